/** Whoever may start a workflow wants the worker's own machine, on which its runners are processes (`HOLDFAST_COMPUTE=process`). */
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createProcessCompute } from '../../activities/compute/process/processCompute.ts';
import type { Compute } from '../../activities/ports/compute.ts';
import type { ProvisionInput } from '../../core/activities/index.ts';
import { clusterTaskQueue, type RunnerInput } from '../../core/contract/index.ts';
import { FakeCiServer } from '../support/fakeCiServer.ts';
import { holdfastWorld, type HoldfastWorld } from '../support/holdfastWorld.ts';
import { describeWithLab } from '../support/lab.ts';
import {
  rejectionReason,
  startUntrustedWorker,
  type UntrustedWorker,
} from '../support/untrustedWorker.ts';

await describeWithLab(
  "users who can start workflows, and the worker's machine",
  { temporal: true },
  (lab) => {
    let folder: string;
    let compute: Compute;
    let world: HoldfastWorld;
    let untrusted: UntrustedWorker;
    const prey = (): string => join(folder, 'taken');

    beforeAll(async () => {
      const address = lab.temporal?.address ?? '';
      folder = await mkdtemp(join(tmpdir(), 'holdfast-machine-'));
      // Its own command does what its arguments and variables say, as a runner's would.
      compute = createProcessCompute({
        stateDir: join(folder, 'state'),
        command: ['sh', '-c', 'eval "$PREY"; eval "$1"', 'sh'],
      });
      world = await holdfastWorld(address, { compute, ciServers: new FakeCiServer() });
      untrusted = await startUntrustedWorker(address, world.client);
    }, 120_000);
    afterAll(async () => {
      await untrusted.close();
      await world.close();
      await rm(folder, { recursive: true });
    });

    /** What each brings, which the worker's user would carry out. */
    const WANTED: readonly (readonly [
      field: string,
      bring: () => Pick<RunnerInput, 'command' | 'args' | 'env'>,
    ])[] = [
      ['command', () => ({ command: ['touch', prey()] })],
      ['args', () => ({ args: [`touch ${prey()}`] })],
      ['env', () => ({ env: { PREY: `touch ${prey()}` } })],
    ];
    const identity = (workflowId: string): ProvisionInput['pod']['identity'] => ({
      workflowId,
      firstRunId: 'first',
      attempt: 1,
    });

    async function expectNothingRun(why: string, field: string): Promise<void> {
      expect(why).toContain(`${field}: this worker runs only its own command`);
      expect({ processes: await compute.list(), taken: existsSync(prey()) }).toEqual({
        processes: [],
        taken: false,
      });
    }

    test.each(WANTED)(
      "do not run their own %s there, by a runner's input",
      async (field, bring) => {
        const run = await world.start(bring());
        await expectNothingRun(await rejectionReason(run.result()), field);
      },
    );

    test.each(WANTED)(
      'do not run their own %s there, by a workflow of their own',
      async (field, bring) => {
        const input = (workflowId: string): ProvisionInput => ({
          runnerName: 'runner-x',
          pod: {
            identity: identity(workflowId),
            labels: {},
            terminationGracePeriodSeconds: 30,
            ...bring(),
          },
          credentialsRetryMs: 1_000,
          completeWithinMs: 1_000,
        });
        const location = await compute.location();
        await expectNothingRun(
          await untrusted.call('provision', clusterTaskQueue(world.taskQueue), (id: string) => ({
            location,
            ...input(id),
          })),
          field,
        );
      },
    );
  },
);
