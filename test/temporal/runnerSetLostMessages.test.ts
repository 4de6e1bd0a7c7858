/**
 * What a set and a runner say to each other is lost: the set reaches its goal all the same. Every word in turn is lost in a model
 * (unit/workflows/runnerSet.lostMessages); here it is carried out.
 */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { ApplicationFailure } from '@temporalio/common';
import type { StartRunnersInput } from '../../core/activities/index.ts';
import {
  RUNNER_WORKFLOW,
  SEARCH_ATTRIBUTES,
  SET_RUNNER_MEMO,
  type SetRunnerStatus,
} from '../../core/contract/index.ts';
import type { FakeCiServer } from '../support/fakeCiServer.ts';
import type { FakeCompute } from '../support/fakeCompute.ts';
import type { HoldfastWorld } from '../support/holdfastWorld.ts';
import { describeWithLab } from '../support/lab.ts';
import { expectNothingLeft, memoryWorld } from '../support/memoryWorld.ts';
import { SetRun } from '../support/setRun.ts';
import { until } from '../support/until.ts';

await describeWithLab(
  'a set and runners whose messages to each other are lost',
  { temporal: true },
  (lab) => {
    let compute: FakeCompute;
    let ci: FakeCiServer;
    let world: HoldfastWorld;

    beforeEach(async () => {
      ({ compute, ci, world } = await memoryWorld(lab));
    });
    afterEach(async () => await world.close());

    const start = async (scaleDownDelay = '0s'): Promise<SetRun> =>
      await SetRun.start(
        { world, compute, ci },
        { replicas: 2, scaleDownDelay, template: { ephemeral: false } as never },
      );
    const runnersOf = ({ runners }: { runners: readonly SetRunnerStatus[] }): string[] =>
      runners.map(({ workflowId }) => workflowId).toSorted();

    async function endsClean(set: SetRun): Promise<void> {
      expect((await set.end()).runners).toEqual([]);
      expectNothingLeft({ compute, ci });
    }

    test('a lost start: a runner that does not exist is replaced', async () => {
      let lost: string[] = [];
      world.pretences.push({
        activity: 'startRunners',
        answer: ({ runners }: StartRunnersInput) => {
          lost = runners.map(({ workflowId }) => workflowId);
          return { at: Date.now(), rejected: [] };
        },
      });
      const set = await start();
      // Not before visibility has had its time.
      await set.reaches(
        'others in their place',
        (status) =>
          status.runners.length === 2 &&
          !runnersOf(status).some((workflowId) => lost.includes(workflowId)),
      );
      expect(lost).toHaveLength(2);
      await set.comesTo({ idle: 2 });
      await endsClean(set);
    });

    test('a list that fails permanently, and one in two parts: the set continues', async () => {
      const fails = (): never => {
        throw ApplicationFailure.nonRetryable('result exceeds size limit', 'TooLarge');
      };
      world.pretences.push(
        { activity: 'listRunners', answer: fails },
        {
          activity: 'listRunners',
          answer: () => ({ at: Date.now(), runners: [], unconfirmed: [], next: '' }),
        },
      );
      const set = await start();
      await set.comesTo({ idle: 2 });
      expect(world.pretences).toEqual([]);
      await endsClean(set);
    });

    test('a lost drain, in a rollout and at the end: a runner without a reaction is shown, and drained again', async () => {
      const set = await start();
      const old = runnersOf(await set.comesTo({ idle: 2 }));
      const unheard = (times: number): void => {
        for (let i = 0; i < times; i++)
          world.pretences.push({
            activity: 'drainRunners',
            answer: () => ({ at: Date.now(), ended: [] }),
          });
      };
      unheard(50);
      await set.command({
        command: 'setTemplate',
        template: SetRun.template({ ephemeral: false, labels: ['linux', 'v2'] }),
      });
      const timer = setInterval(() => set.bringUp(), 20);
      try {
        const shown = await set.reaches('a runner to have been asked twice', ({ runners }) =>
          runners.some(({ drainRequested }) => (drainRequested?.times ?? 0) >= 2),
        );
        world.pretences.length = 0;
        expect(
          shown.runners.find(({ drainRequested }) => drainRequested !== undefined),
        ).toMatchObject({
          state: 'draining',
          workflowId: expect.stringMatching(old.join('|')),
        });
        expect(shown.waitingFor).toContain(
          '1 runners that were asked to drain and do not: each is asked again every 1s',
        );
        const done = await set.reaches(
          'the rollout',
          (status) =>
            status.runners.length === 2 &&
            status.runners.every(
              ({ state, templateHash }) => state === 'idle' && templateHash === status.templateHash,
            ),
        );
        expect(runnersOf(done).filter((workflowId) => old.includes(workflowId))).toEqual([]);
      } finally {
        clearInterval(timer);
      }
      for (const workflowId of old)
        expect(await world.client.workflow.getHandle(workflowId).result()).toMatchObject({
          outcome: 'succeeded',
          message: expect.stringContaining('was drained'),
        });
      unheard(2);
      await endsClean(set);
    });

    test('runners that never report that they are online or have ended are found', async () => {
      const tellsNobody = async ({
        set,
        templateHash,
        template,
        runners,
      }: StartRunnersInput): Promise<unknown> => {
        for (const { workflowId } of runners) {
          await world.client.workflow.start(RUNNER_WORKFLOW, {
            workflowId,
            taskQueue: world.taskQueue,
            args: [template],
            memo: { [SET_RUNNER_MEMO]: { templateHash, ephemeral: false } },
            typedSearchAttributes: [{ key: SEARCH_ATTRIBUTES.set, value: set }],
          });
        }
        return { at: Date.now(), rejected: [] };
      };
      world.pretences.push({ activity: 'startRunners', answer: tellsNobody });
      const set = await start();
      const [first = '', second = ''] = runnersOf(await set.comesTo({ idle: 2 }));
      compute.end(set.podOf(first), 1);
      const after = await set.reaches(
        'another in its place',
        (status) => status.runners.length === 2 && !runnersOf(status).includes(first),
      );
      expect(runnersOf(after)).toContain(second);
      await set.comesTo({ idle: 2 });
      await endsClean(set);
    });

    test('a runner that is torn down and starts another attempt belongs to the set again', async () => {
      const set = await start('1h');
      const [first = ''] = runnersOf(await set.comesTo({ idle: 2 }));
      const pod = set.podOf(first);
      await set.command({ command: 'hold', runner: first });
      const refuse = (): void => {
        if (compute.failures.length === 0)
          compute.failures.push({ method: 'deletePod', error: new Error('not now') });
      };
      refuse();
      const refusing = setInterval(refuse, 1);
      try {
        compute.end(pod, 143, { terminating: true, disruptionReason: 'EvictionByEvictionAPI' });
        await set.reaches('it to leave', ({ runners }) =>
          runners.some(({ workflowId, state }) => workflowId === first && state === 'draining'),
        );
      } finally {
        clearInterval(refusing);
      }
      compute.failures.length = 0;
      await until('its next pod', () =>
        [...compute.pods.values()].some(
          ({ workflowId, name }) => workflowId === first && name !== pod,
        ),
      );
      // Another was started meanwhile, and one of them is more than was ever wanted.
      const { runners } = await set.comesTo({ idle: 2 });
      expect(runners).toContainEqual(
        expect.objectContaining({ workflowId: first, runnerName: expect.stringContaining('-r2') }),
      );
      await endsClean(set);
    });
  },
);
