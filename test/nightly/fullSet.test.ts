/**
 * A large set is scaled to nothing and back, with a workflow for each runner, on a real server with its default limits. HOLDFAST_TEST_RUNNERS: how
 * many, 5,000 at most, which take half an hour.
 */
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pMap from 'p-map';
import {
  RUNNER_WORKFLOW,
  SEARCH_ATTRIBUTES,
  SET_RUNNER_MEMO,
  runnerEventsSignal,
  setWorkflowId,
} from '../../core/contract/index.ts';
import type { StartRunnersInput, Timestamped } from '../../core/activities/index.ts';
import { MAX_RUNNERS } from '../../core/input/runnerSetSchema.ts';
import { quoteLiteral, runningRunnersQuery } from '../../core/domain/visibility.ts';
import { describeWithLab } from '../support/lab.ts';
import { memoryWorld, type MemoryWorld } from '../support/memoryWorld.ts';
import { historySizes } from '../support/setHistories.ts';
import { SetRun } from '../support/setRun.ts';
import { until } from '../support/until.ts';

const RUNNERS = Number(process.env['HOLDFAST_TEST_RUNNERS'] ?? 500);
const MIB = 1024 * 1024;
const ROUND_MS = 600_000;
const AT_ONCE = 20;
const WORKFLOWS = fileURLToPath(new URL('../support/trivialRunners.ts', import.meta.url));

const nameOf = (workflowId: string): string => `${workflowId.slice('runner-'.length)}-0a1b2c3d4e`;

await describeWithLab('a large set', { temporal: true }, (lab) => {
  let stage: MemoryWorld;
  beforeAll(async () => {
    stage = await memoryWorld(lab);
    await stage.world.suspend();
    await stage.world.resume(['default'], {}, { workflowsPath: WORKFLOWS });
    const start = { activity: 'startRunners' as const, answer: startRunners };
    stage.world.pretences.push(...Array.from({ length: RUNNERS }, () => start));
  });
  afterAll(async () => await stage.world.close(), ROUND_MS);

  /** Runners that are online from the start, and whose workflows do nothing before they are drained. */
  async function startRunners({
    set,
    runners,
    templateHash,
    ephemeral,
  }: StartRunnersInput): Promise<Timestamped & { rejected: string[] }> {
    const { client, taskQueue } = stage.world;
    await pMap(
      runners,
      async ({ workflowId }) =>
        await client.workflow.start(RUNNER_WORKFLOW, {
          workflowId,
          taskQueue,
          memo: { [SET_RUNNER_MEMO]: { templateHash, ephemeral } },
          typedSearchAttributes: [
            { key: SEARCH_ATTRIBUTES.set, value: set },
            { key: SEARCH_ATTRIBUTES.name, value: nameOf(workflowId) },
            { key: SEARCH_ATTRIBUTES.phase, value: 'Idle' },
          ],
        }),
      { concurrency: AT_ONCE },
    );
    const at = Date.now();
    await client.workflow.getHandle(setWorkflowId(set)).signal(runnerEventsSignal, {
      events: runners.map(({ workflowId }) => ({
        kind: 'online',
        workflowId,
        runnerName: nameOf(workflowId),
        at,
      })),
    });
    return { at, rejected: [] };
  }

  async function idsIn(phase: string): Promise<string[]> {
    const { client, taskQueue } = stage.world;
    const query = `${runningRunnersQuery(taskQueue)} AND ${SEARCH_ATTRIBUTES.phase.name} = ${quoteLiteral(phase)}`;
    const ids: string[] = [];
    for await (const { workflowId } of client.workflow.list({ query, pageSize: 1_000 }))
      ids.push(workflowId);
    return ids;
  }

  /** Those that drain end, and the set is not told. */
  async function terminateDraining(): Promise<void> {
    const { workflow } = stage.world.client;
    await pMap(
      await idsIn('Draining'),
      async (id) =>
        await workflow
          .getHandle(id)
          .terminate()
          .catch(() => undefined),
      { concurrency: AT_ONCE },
    );
  }

  test(
    'scales to zero and back while runners are still draining',
    async () => {
      const since = performance.now();
      const figure = (what: string): void =>
        void process.stderr.write(
          `figures: ${what} after ${Math.round((performance.now() - since) / 1000)} s\n`,
        );
      const set = await SetRun.start(stage, {
        name: randomUUID(),
        replicas: RUNNERS,
        scaleDownDelay: '0s',
        intervals: { relist: '10s' } as never,
      });
      const reaches = async (what: string, idle: number, draining: number): Promise<void> => {
        await set.reachesCounts({ idle, draining }, ROUND_MS);
        figure(what);
      };
      await reaches('all online', RUNNERS, 0);
      await set.command({ command: 'scale', replicas: 0 });
      await reaches('all draining', 0, RUNNERS);
      await set.command({ command: 'scale', replicas: RUNNERS });
      await reaches('as many again online', RUNNERS, RUNNERS);
      const { runners } = await set.status();
      expect(runners).toHaveLength(2 * RUNNERS);
      // What a list or an answer in one piece would be.
      expect(JSON.stringify(runners).length).toBeGreaterThan(RUNNERS < MAX_RUNNERS ? 0 : 2 * MIB);
      await until(
        'the end of those that drain',
        async () => {
          await terminateDraining();
          return (await idsIn('Draining')).length === 0 && (await idsIn('Idle')).length === RUNNERS;
        },
        () => '',
        ROUND_MS,
      );
      await reaches('the old ones gone', RUNNERS, 0);
      const sizes = await historySizes(stage.world.client, set.handle.workflowId);
      process.stderr.write(`figures: ${JSON.stringify(sizes)}\n`);
      expect(sizes.failures).toEqual([]);
      expect(Math.max(...Object.values(sizes.largest))).toBeLessThan(2 * MIB);
      await set.command({ command: 'drain' });
      await until(
        'its end',
        async () => {
          await terminateDraining();
          return (await set.handle.describe()).status.name === 'COMPLETED';
        },
        () => '',
        ROUND_MS,
      );
      figure('the end');
      expect(await idsIn('Idle')).toEqual([]);
    },
    5 * ROUND_MS,
  );
});
