/**
 * A set of the largest size is scaled to nothing and back, while those that drain are still there, on a real server with its default limits. The
 * runners are those of a list that says something new of each: the most that a set can have to take in. fullSet.test.ts has real ones.
 */
import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { HoldfastActivities, ListRunnersInput } from '../../core/activities/index.ts';
import { runnerEventsSignal, setWorkflowId, type RunnerPhase } from '../../core/contract/index.ts';
import { MAX_RUNNERS } from '../../core/input/runnerSetSchema.ts';
import { describeWithLab } from '../support/lab.ts';
import { memoryWorld, type MemoryWorld } from '../support/memoryWorld.ts';
import { historySizes } from '../support/setHistories.ts';
import { SetRun } from '../support/setRun.ts';

const MIB = 1024 * 1024;
const ROUND_MS = 300_000;
const PART = 1_000;
const CALLS = 5_000;

const nameOf = (workflowId: string): string => `${workflowId.slice('runner-'.length)}-0a1b2c3d4e`;

await describeWithLab('a set of 5,000 runners', { temporal: true }, (lab) => {
  let stage: MemoryWorld;
  const runners = new Map<string, RunnerPhase>();
  beforeEach(async () => {
    stage = await memoryWorld(lab);
  });
  afterEach(async () => await stage.world.close());

  const ACTIVITIES = {
    startRunners: async ({ set, runners: started }) => {
      const at = Date.now();
      for (const { workflowId } of started) runners.set(workflowId, 'Idle');
      await stage.world.client.workflow.getHandle(setWorkflowId(set)).signal(runnerEventsSignal, {
        events: started.map(({ workflowId }) => ({
          kind: 'online',
          workflowId,
          runnerName: nameOf(workflowId),
          at,
        })),
      });
      return { at, rejected: [] };
    },
    drainRunners: async ({ runners: drained }) => {
      for (const { workflowId } of drained) runners.set(workflowId, 'Draining');
      return { at: Date.now(), ended: [] };
    },
    listRunners: async ({ known = [], page = '0' }: ListRunnersInput) => {
      const to = Number(page) + PART;
      return {
        at: Date.now(),
        runners: [...runners].slice(Number(page), to).map(([workflowId, phase]) => ({
          workflowId,
          phase,
          startedAt: Date.now(),
          runnerName: nameOf(workflowId),
          templateHash: '0a1b2c3d4e',
          ephemeral: true,
        })),
        unconfirmed: [...known.keys()],
        ...(to < runners.size ? { next: String(to) } : {}),
      };
    },
    findEndedRunners: async ({ workflowIds }) => ({
      at: Date.now(),
      ended: workflowIds.filter((id) => !runners.has(id)),
    }),
  } satisfies Partial<HoldfastActivities>;

  test(
    'reads lists of 10,000 runners in parts, and continues',
    async () => {
      for (const [activity, answer] of Object.entries(ACTIVITIES))
        stage.world.pretences.push(
          ...Array.from({ length: CALLS }, () => ({
            activity: activity as keyof typeof ACTIVITIES,
            answer: answer as (input: never) => unknown,
          })),
        );
      const set = await SetRun.start(stage, {
        name: randomUUID(),
        replicas: MAX_RUNNERS,
        scaleDownDelay: '0s',
        intervals: { relist: '10s' } as never,
      });
      await set.reachesCounts({ idle: MAX_RUNNERS, draining: 0 }, ROUND_MS);
      await set.command({ command: 'scale', replicas: 0 });
      await set.reachesCounts({ idle: 0, draining: MAX_RUNNERS }, ROUND_MS);
      await set.command({ command: 'scale', replicas: MAX_RUNNERS });
      await set.reachesCounts({ idle: MAX_RUNNERS, draining: MAX_RUNNERS }, ROUND_MS);
      const { runners: all } = await set.status();
      expect(all).toHaveLength(2 * MAX_RUNNERS);
      expect(JSON.stringify(all).length).toBeGreaterThan(2 * MIB);
      for (const [workflowId, phase] of runners)
        if (phase === 'Draining') runners.delete(workflowId);
      await set.reachesCounts({ idle: MAX_RUNNERS, draining: 0 }, ROUND_MS);
      // Before it is read: it lists its runners again and again.
      await set.handle.terminate();
      const { failures, largest, runs } = await historySizes(
        stage.world.client,
        set.handle.workflowId,
      );
      expect(failures).toEqual([]);
      expect(Math.max(...Object.values(largest))).toBeLessThan(2 * MIB);
      process.stderr.write(`figures: ${runs} runs, largest events ${JSON.stringify(largest)}\n`);
    },
    5 * ROUND_MS,
  );
});
