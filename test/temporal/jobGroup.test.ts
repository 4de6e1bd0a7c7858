/** Versions of a change set, one after the other, on a real Temporal server. */
import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import pMap from 'p-map';
import {
  JOB_GROUP_WORKFLOW,
  groupedJobId,
  jobGroupStatusQuery,
  jobRevisionSignal,
  type JobGroupStatus,
  type JobRevision,
} from '../../core/contract/index.ts';
import { JobRun, commandEnds, playsByItself, step } from '../support/jobRun.ts';
import { describeWithLab } from '../support/lab.ts';
import { memoryWorld, type MemoryWorld } from '../support/memoryWorld.ts';
import { until } from '../support/until.ts';

await describeWithLab('a group of runs', { temporal: true }, (lab) => {
  let all: MemoryWorld;
  let group: string;

  beforeEach(async () => {
    all = await memoryWorld(lab);
    group = `job-group:${randomUUID().slice(0, 8)}`;
  });
  afterEach(async () => await all.world.close());

  const version = (commit: string, more: Partial<JobRevision> = {}): JobRevision => ({
    commit,
    at: '2026-11-22T10:00:00Z',
    job: { name: 'web', test: [step('unit')] },
    ...more,
  });
  const come = async (...args: Parameters<typeof version>): Promise<unknown> =>
    await all.world.client.workflow.signalWithStart(JOB_GROUP_WORKFLOW, {
      workflowId: group,
      taskQueue: all.world.taskQueue,
      args: [],
      signal: jobRevisionSignal,
      signalArgs: [version(...args)],
    });
  const run = (generation: number): JobRun => JobRun.of(all, groupedJobId(group, generation));
  async function reaches(
    what: string,
    like: (status: JobGroupStatus) => boolean,
  ): Promise<JobGroupStatus> {
    let last: JobGroupStatus | undefined;
    await until(
      `the group to reach: ${what}`,
      async () =>
        like((last = await all.world.client.workflow.getHandle(group).query(jobGroupStatusQuery))),
      () => JSON.stringify(last),
    );
    return last as JobGroupStatus;
  }

  test('a newer version: the older run gets the reason and ends first, with its pods; then the newer one starts, and counts', async () => {
    all.compute.onDelete = 'linger';
    await come('a');
    const older = await run(1).runs('test-1');
    await come('b');
    await until('the older step to be stopped', () =>
      all.compute.deletions.some(({ name }) => name === older),
    );
    expect(await reaches('b waits', ({ queued }) => queued)).toEqual({
      runNumber: 2,
      commit: 'b',
      queued: true,
      running: { workflowId: groupedJobId(group, 1), superseded: true },
    });
    expect(run(2).made).toEqual([]);
    commandEnds(all.compute, older, 143, { reason: 'superseded' });
    all.compute.vanish(older);
    expect(await run(1).result()).toMatchObject({ outcome: 'aborted', cause: 'superseded' });
    await run(2).ends('test-1');
    expect(await reaches('b is over', ({ outcome }) => outcome !== undefined)).toEqual({
      runNumber: 2,
      commit: 'b',
      queued: false,
      outcome: 'succeeded',
    });
    expect(all.compute.deletions.find(({ name }) => name === older)).toMatchObject({
      stopReason: 'superseded',
    });
  });

  test('the same commit, and late events, run once; again on request', async () => {
    playsByItself(all.compute, 'end');
    await come('b', { at: '2026-11-22T11:00:00Z' });
    await reaches('b is over', ({ outcome }) => outcome === 'succeeded');
    await come('b', { at: '2026-11-22T12:00:00Z' });
    await come('a');
    await come('c', { at: 'yesterday' });
    await come('b', { rerun: true });
    expect(
      await reaches(
        'b is over once more',
        ({ runNumber, outcome }) => runNumber === 2 && outcome !== undefined,
      ),
    ).toEqual({ runNumber: 2, commit: 'b', queued: false, outcome: 'succeeded' });
    expect(all.compute.created.map(({ identity }) => identity.workflowId)).toEqual(
      [1, 2].map((generation) => `${groupedJobId(group, generation)}-test-1`),
    );
  });

  test('a revision is run after 500 signals that cannot be read', async () => {
    playsByItself(all.compute, 'end');
    await come('a');
    await reaches('a is over', ({ outcome }) => outcome === 'succeeded');
    const handle = all.world.client.workflow.getHandle(group);
    await pMap(
      Array.from({ length: 500 }),
      async () => await handle.signal(jobRevisionSignal, {} as JobRevision),
      {
        concurrency: 50,
      },
    );
    await come('b', { at: '2026-11-22T11:00:00Z' });
    expect(
      await reaches(
        'b is over',
        ({ runNumber, outcome }) => runNumber === 2 && outcome !== undefined,
      ),
    ).toMatchObject({ commit: 'b', outcome: 'succeeded' });
  });

  test('a rejected job does not end the group', async () => {
    playsByItself(all.compute, 'end');
    await come('a', { job: { name: 'web', test: [] } });
    expect(await reaches('a is refused', ({ outcome }) => outcome !== undefined)).toMatchObject({
      commit: 'a',
      outcome: 'errored',
    });
    await come('b');
    expect(
      await reaches('b is over', ({ commit, outcome }) => commit === 'b' && outcome !== undefined),
    ).toMatchObject({ outcome: 'succeeded' });
  });

  test('20 pushes within a second: only the last runs', async () => {
    playsByItself(all.compute, 'end');
    for (let each = 0; each < 20; each++) await come(`c${each}`);
    expect(
      await reaches(
        'the last is over',
        ({ commit, outcome }) => commit === 'c19' && outcome !== undefined,
      ),
    ).toEqual({ runNumber: 20, commit: 'c19', queued: false, outcome: 'succeeded' });
    const { events } = await all.world.client.workflow.getHandle(group).fetchHistory();
    const cameMs = (events ?? [])
      .filter(({ workflowExecutionSignaledEventAttributes: signal }) => signal)
      .map(({ eventTime }) => Number(eventTime?.seconds) * 1_000 + (eventTime?.nanos ?? 0) / 1e6);
    // On a machine that is slow to send them the group may have found it quiet meanwhile.
    const quiet = cameMs.slice(1).filter((at, index) => at - (cameMs[index] ?? 0) > 900);
    expect(
      new Set(all.compute.created.map(({ identity }) => identity.workflowId)).size,
    ).toBeLessThanOrEqual(1 + quiet.length);
  });
});
