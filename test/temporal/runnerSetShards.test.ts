/** Execution of the distribution of jobs over equal sets. The decisions are tested in unit/core/jobRouting and unit/workflows/runnerSet.rerouting. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { JobEventBatcher } from '../../worker/webhook/jobEventBatcher.ts';
import { SetDirectory } from '../../worker/webhook/setDirectory.ts';
import {
  setWorkflowId,
  type JobEvent,
  type RunnerSetInput,
  type RunnerSetStatus,
} from '../../core/contract/index.ts';
import type { FakeCiServer } from '../support/fakeCiServer.ts';
import type { FakeCompute } from '../support/fakeCompute.ts';
import type { HoldfastWorld } from '../support/holdfastWorld.ts';
import { describeWithLab } from '../support/lab.ts';
import { expectNothingLeft, memoryWorld } from '../support/memoryWorld.ts';
import { randomOf } from '../support/random.ts';
import { SetRun } from '../support/setRun.ts';
import { until } from '../support/until.ts';

/** Nothing that a list would heal may be healed by it here. */
const INTERVALS = { relist: '1h', reroute: '200ms' };

await describeWithLab('equal sets', { temporal: true }, (lab) => {
  let compute: FakeCompute;
  let ci: FakeCiServer;
  let world: HoldfastWorld;
  let covering: SetDirectory;
  let signals: JobEventBatcher;

  beforeEach(async () => {
    ({ compute, ci, world } = await memoryWorld(lab));
    const { taskQueue } = world;
    covering = new SetDirectory({
      client: () => world.client,
      taskQueue,
      logger: { warn: () => undefined },
    });
    signals = new JobEventBatcher(() => world.client);
  });
  afterEach(async () => await world.close());

  async function start(
    count: number,
    max: number,
    first: Partial<RunnerSetInput> = {},
  ): Promise<SetRun[]> {
    const input: Partial<RunnerSetInput> = {
      minIdle: 0,
      max,
      queueCheck: '0s',
      scaleDownDelay: '1h',
      intervals: INTERVALS,
    };
    const sets = await Promise.all(
      Array.from(
        { length: count },
        async (_none, index) =>
          await SetRun.start({ world, compute, ci }, { ...input, ...(index === 0 ? first : {}) }),
      ),
    );
    await until(
      'all sets to be listed with what they cover',
      async () => (await covering.list(0)).sets.length === count,
    );
    return sets;
  }

  const event = (action: JobEvent['action'], jobId: number, runnerName?: string): JobEvent => ({
    action,
    jobId: String(jobId),
    runAttempt: 1,
    repository: 'acme/app',
    labels: ['linux'],
    at: Date.now(),
    ...(runnerName === undefined ? {} : { runnerName }),
  });
  /** As the webhook tells: the job's set, and the one whose runner runs it. */
  async function deliver(one: JobEvent, own?: SetRun): Promise<void> {
    const { chosen } = await covering.route({ ciServer: 'github', event: one }, false);
    const told = new Set([chosen ?? '', ...(own === undefined ? [] : [setWorkflowId(own.name)])]);
    await Promise.all(
      [...told].map(async (id) => await signals.send(id, one, AbortSignal.timeout(30_000))),
    );
  }
  const statuses = async (sets: readonly SetRun[]): Promise<RunnerSetStatus[]> =>
    await Promise.all(sets.map(async (set) => await set.status()));
  const total = (
    all: readonly RunnerSetStatus[],
    of: (status: RunnerSetStatus) => number,
  ): number => all.reduce((sum, status) => sum + of(status), 0);
  async function reach(
    sets: readonly SetRun[],
    what: string,
    like: (all: RunnerSetStatus[]) => boolean,
  ): Promise<RunnerSetStatus[]> {
    let last: RunnerSetStatus[] = [];
    const short = (): string =>
      JSON.stringify(
        last.map(({ desired, jobs, rerouted, runners, waitingFor }) => ({
          desired,
          jobs,
          rerouted,
          runners: runners.length,
          waitingFor,
        })),
      );
    await until(what, async () => like((last = await statuses(sets))), short, 120_000);
    return last;
  }

  test('as many jobs as all of them can serve: each job has one runner, whichever runner takes it', async () => {
    const [SETS, MAX] = [20, 10];
    const sets = await start(SETS, MAX);
    const ids = Array.from({ length: SETS * MAX }, (_none, index) => 1_000 + index);
    await Promise.all(ids.map(async (id) => await deliver(event('queued', id))));
    // A fair throw of 200 dice of 20 faces is never even: what is beyond ten is passed on.
    const placed = await reach(sets, 'every job to have a place', (all) =>
      all.every(({ desired, jobs }) => desired === MAX && jobs.queued === MAX),
    );
    expect(total(placed, ({ rerouted = 0 }) => rerouted)).toBeGreaterThan(0);
    const timer = setInterval(() => sets.forEach((set) => set.bringUp()), 20);
    const idle = await reach(sets, 'all runners', (all) =>
      all.every(({ runners }) => runners.filter(({ state }) => state === 'idle').length === MAX),
    ).finally(() => clearInterval(timer));
    expect(compute.created).toHaveLength(ids.length);

    // The CI server gives each job to any runner with its labels, whichever set that is of.
    const below = randomOf(7);
    const free = idle.flatMap(({ runners }, index) =>
      runners.map((runner) => ({ runner, set: sets[index] as SetRun })),
    );
    const runs = ids.map((id) => ({
      id,
      ...(free.splice(below(free.length), 1)[0] as (typeof free)[number]),
    }));
    for (const { runner, set } of runs) set.startJob(runner);
    await Promise.all(
      runs.map(
        async ({ id, runner, set }) =>
          await deliver(event('in_progress', id, runner.runnerName), set),
      ),
    );
    await reach(sets, 'no job to wait', (all) =>
      all.every(({ jobs, rerouted }) => jobs.queued === 0 && rerouted === undefined),
    );
    for (const { runner, set } of runs) set.endJob(runner);
    await Promise.all(
      runs.map(
        async ({ id, runner, set }) =>
          await deliver(event('completed', id, runner.runnerName), set),
      ),
    );
    await reach(sets, 'all runners gone', (all) =>
      all.every(
        ({ desired, runners, jobs }) => desired + runners.length + jobs.queued + jobs.running === 0,
      ),
    );
    expect(compute.created).toHaveLength(ids.length);
    expectNothingLeft({ compute, ci });
  }, 150_000);

  test('a paused and an ending one leave their jobs to the others', async () => {
    const sets = await start(3, 20, { paused: true });
    const [paused, ends, open] = sets as [SetRun, SetRun, SetRun];
    const ids = Array.from({ length: 12 }, (_none, index) => 5_000 + index);
    await Promise.all(ids.map(async (id) => await deliver(event('queued', id))));
    await reach(
      [paused],
      'the paused one to have passed all on',
      ([status]) => status?.jobs.queued === 0 && (status.rerouted ?? 0) > 0,
    );
    await reach(
      sets,
      'every job to be with one of the two',
      (all) => total(all, ({ jobs }) => jobs.queued) === ids.length,
    );
    const homes = await Promise.all(
      ids.map(
        async (id) =>
          (await covering.route({ ciServer: 'github', event: event('queued', id) }, false)).chosen,
      ),
    );
    await ends.end();
    // The paused one still knows whom it has passed jobs on to: they went on from there.
    await reach(
      [open],
      'all of them',
      ([status]) => status?.jobs.queued === ids.length && status.desired === ids.length,
    );
    await until('the end to be listed', async () => (await covering.list(0)).sets.length === 2);
    // News comes to the set that the job was routed to, and from there to whoever has it now; of those whose set has ended a look has to tell.
    const heard = ids.filter((_id, index) => homes[index] !== setWorkflowId(ends.name));
    await Promise.all(heard.map(async (id) => await deliver(event('completed', id))));
    await reach(
      [open],
      'those that nobody told of',
      ([status]) => status?.jobs.queued === ids.length - heard.length,
    );
  }, 150_000);
});
