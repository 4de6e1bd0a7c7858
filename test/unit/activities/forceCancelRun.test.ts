/** Whether a force-cancel was sent, as later attempts of the activity see it. */
import { beforeEach, expect, test } from '@jest/globals';
import type { Client } from '@temporalio/client';
import { MockActivityEnvironment } from '@temporalio/testing';
import type { ActivityPorts } from '../../../activities/ports/activityPorts.ts';
import { CiServerError } from '../../../activities/ports/ciServerError.ts';
import { runnerHash } from '../../../activities/compute/naming.ts';
import { forceCancelRun } from '../../../activities/rerun/forceCancelRun.ts';
import type { ForceCancelResult, RequestRerunInput } from '../../../core/activities/index.ts';
import { RUNNER_WORKFLOW } from '../../../core/contract/index.ts';
import { FakeCiServer } from '../../support/fakeCiServer.ts';
import { FakeReruns } from '../../support/fakeReruns.ts';

const SCOPE = { kind: 'organization', name: 'acme' } as const;
const PARENT = { workflowId: 'runner', firstRunId: 'first' };
const NAME = `linux-${runnerHash(PARENT)}`;
const INPUT: RequestRerunInput = {
  scope: SCOPE,
  credential: 'default',
  runnerName: NAME,
  job: { id: '1', repository: 'acme/web' },
  perRun: 1,
  perDay: 10,
  recorded: false,
  lostAtMs: Date.now() - 61_000,
  forceCancelAfterMs: 60_000,
};
let ci: FakeCiServer;
let reruns: FakeReruns;

beforeEach(() => {
  ci = new FakeCiServer();
  reruns = new FakeReruns();
  ci.reruns = reruns;
  ci.connect(NAME, false);
  reruns.begin('1', NAME);
  reruns.evidence.set('1', 'none');
});

/** A client whose workflows are the calling one, a child of the runner's. */
const CLIENT = {
  withDeadline: async (_deadline: number, run: () => unknown) => await run(),
  withAbortSignal: async (_signal: AbortSignal, run: () => unknown) => await run(),
  workflow: {
    count: async () => ({ count: 0 }),
    getHandle: () => ({
      describe: async () => ({
        type: RUNNER_WORKFLOW,
        startTime: new Date(),
        raw: {
          workflowExecutionInfo: {
            firstRunId: PARENT.firstRunId,
            parentExecution: { workflowId: PARENT.workflowId, runId: 'run' },
          },
        },
      }),
    }),
  },
} as unknown as Client;

/** Runs attempts until one succeeds. Each begins with the heartbeat details of the previous one. */
async function attempts(killedAfter = 0): Promise<ForceCancelResult> {
  let details: unknown;
  for (let attempt = 1 + killedAfter; ; attempt++) {
    const environment = new MockActivityEnvironment(
      { attempt, heartbeatDetails: details },
      { client: CLIENT },
    );
    environment.on('heartbeat', (latest) => (details = latest));
    const ports = { ciServers: ci } as unknown as ActivityPorts;
    const run = async (): Promise<ForceCancelResult> => await forceCancelRun(ports, INPUT);
    try {
      return await environment.run<[], ForceCancelResult, typeof run>(run);
    } catch (error) {
      if (attempt > 3) throw error;
    }
  }
}

test('it is sent once', async () => {
  expect(await attempts()).toEqual({ sent: true });
  expect(reruns.forceCancelled).toEqual(['1']);
});

test('it counts as sent if its response was lost', async () => {
  reruns.lostResponses.push(new CiServerError('unavailable', 'no answer'));
  expect(await attempts()).toEqual({ sent: true });
  expect(reruns.forceCancelled).toEqual(['1']);
});

test('it may have been sent by an attempt whose worker was killed', async () => {
  reruns.end('1', 'cancelled');
  expect(await attempts(1)).toEqual({ sent: true });
});

test('it was not sent by an attempt that failed before the request', async () => {
  const answer = new CiServerError('unavailable', 'no answer');
  ci.script.push({ method: 'find', answer });
  // Meanwhile a newer push has cancelled the run.
  ci.beforeFind = () => reruns.end('1', 'cancelled');
  expect(await attempts()).toEqual({ sent: false });
  expect(reruns.forceCancelled).toEqual([]);
});
