/** A job's start and end reach the workflow soon, and without any question to the CI server: from within its pod, or by the webhook. */
import { expect } from '@jest/globals';
import type { RunnerPhase, RunnerStatus } from '../../core/contract/index.ts';
import { ClusterWorld } from '../support/clusterWorld.ts';
import { HELD_JOB, type ClusterRun } from '../support/clusterRun.ts';
import { cleanEnd } from '../support/demoRunners.ts';
import { describeWithLab } from '../support/lab.ts';
import { isOverloaded } from '../support/machineLoad.ts';
import { together } from '../support/together.ts';

const JOBS = 22;
const EPHEMERAL = 5;
const BOUND_MS = 2_000;
const BOUND_BEFORE_PROBES_MS = 3_500;

/** The bound, or ten times as much on an overloaded machine. */
const bound = (ms: number): number => (isOverloaded() ? 10 * ms : ms);

/** What the workflow noted of its phases, against what the CI server noted of its jobs: milliseconds. */
interface Latencies {
  readonly starts: number[];
  readonly ends: number[];
}

/** Of a few. */
const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
/** Of many, all but one took no longer; in that one's way may have been whatever else the machine does. */
const allButOne = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b).at(-2) ?? Number.NaN;

function tell(what: string, values: readonly number[]): void {
  const sorted = values.toSorted((a, b) => a - b);
  process.stderr.write(
    `figures: ${what} seen after ms: p50 ${median(values)}, all but one ${allButOne(values)}, max ${sorted.at(-1)} (${sorted.length})\n`,
  );
}

/** When the life entered the phase, for each time that it did. */
const entered = ({ phases }: Pick<RunnerStatus, 'phases'>, phase: RunnerPhase): number[] =>
  phases.filter((each) => each.phase === phase).map(({ at }) => Date.parse(at));

/** Every request that the CI server has got about this life. */
const asked = (run: ClusterRun): string[] =>
  run.world.simulator
    .requests()
    .filter(({ path }) => path.includes(run.key))
    .map(({ endpoint, status }) => `${endpoint} ${status}`);
const REGISTRATION = 'POST /orgs/{org}/actions/runners/generate-jitconfig 201';

/** The pod has said so. A job before that is seen later, and a static runner's not at all if it is over by then. */
async function isIdle(run: ClusterRun): Promise<void> {
  const { pod } = await run.listens();
  await run.world.namespace.waitForPod(
    pod,
    ({ status }) => status?.containerStatuses?.[0]?.ready === true,
  );
}

async function playStatic(world: ClusterWorld): Promise<void> {
  const run = await world.start('static', { ephemeral: false });
  await isIdle(run);
  const before = asked(run);
  const jobs: number[] = [];
  for (let count = 0; count < JOBS; count++) {
    const { id } = await run.runJob(HELD_JOB);
    jobs.push(id);
    await run.reaches(
      `busy with job ${count + 1}`,
      (status) => entered(status, 'Busy').length === count + 1,
    );
    await run.letGo();
    await run.waitForLine({ id }, 'finished');
    await run.reaches(`idle after job ${count + 1}`, ({ phase }) => phase === 'Idle');
  }
  // Not one question from the first job to the last.
  expect(asked(run)).toEqual(before);
  const status = await run.status();
  const [, ...idles] = entered(status, 'Idle');
  const busies = entered(status, 'Busy');
  const starts = jobs.map(
    (id, index) => (busies[index] ?? Number.NaN) - Date.parse(run.job({ id }).started_at ?? ''),
  );
  const ends = jobs.map(
    (id, index) => (idles[index] ?? Number.NaN) - Date.parse(run.job({ id }).completed_at ?? ''),
  );
  tell("starts of a static runner's jobs", starts);
  tell("ends of a static runner's jobs", ends);
  expect(allButOne(starts)).toBeLessThan(bound(BOUND_MS));
  expect(allButOne(ends)).toBeLessThan(bound(BOUND_MS));
  for (const id of jobs) run.expectUnharmed({ id });
  await run.drain();
  expect(await run.ends()).toMatchObject({ outcome: 'succeeded', attempt: 1 });
}

/** One life after the other. @param waiting - the job is there before its runner is */
async function playEphemeral(
  world: ClusterWorld,
  lives: number,
  waiting: boolean,
  how = '',
): Promise<Latencies> {
  const seen: Latencies = { starts: [], ends: [] };
  for (let count = 0; count < lives; count++) {
    const run = await world.start(waiting ? 'awaited' : 'ephemeral');
    if (!waiting) await isIdle(run);
    const job = run.queueJob(HELD_JOB);
    await run.reaches('busy', (status) => entered(status, 'Busy').length === 1);
    await run.letGo();
    const result = await run.ends();
    expect(result).toMatchObject({
      outcome: 'succeeded',
      message: 'The runner completed its job and exited with code 0.',
      attempt: 1,
      unregisterAttempts: 0,
    });
    // The registration, and nothing else: neither its state nor its removal was asked for.
    expect(asked(run)).toEqual([REGISTRATION]);
    run.expectUnharmed(job);
    const [busy = Number.NaN] = entered(result, 'Busy');
    const { started_at, completed_at } = run.job(job);
    seen.starts.push(busy - Date.parse(started_at ?? ''));
    const over = result.phases.find(({ at }) => Date.parse(at) > busy);
    seen.ends.push(Date.parse(over?.at ?? '') - Date.parse(completed_at ?? ''));
  }
  tell(
    `starts of jobs that ${waiting ? 'waited for' : 'came to'} an ephemeral runner${how}`,
    seen.starts,
  );
  // The end of a runner that takes one job only is the end of its process, which takes as long as the runner does to leave.
  tell('ends of ephemeral runners', seen.ends);
  expect(median(seen.ends)).toBeLessThan(bound(BOUND_MS));
  return seen;
}

async function playIdle(world: ClusterWorld): Promise<void> {
  const { starts } = await playEphemeral(world, EPHEMERAL, false);
  expect(median(starts)).toBeLessThan(bound(BOUND_MS));
}

/**
 * The runner is busy before the kubelet has asked it anything: up to a second until the kubelet sees that it is up, and until a second
 * later "not ready" says nothing, because no readiness probe has been answered yet.
 */
async function playAwaited(world: ClusterWorld): Promise<void> {
  const { starts } = await playEphemeral(world, EPHEMERAL, true);
  expect(median(starts)).toBeLessThan(bound(BOUND_BEFORE_PROBES_MS));
}

/** The CI server tells, without being asked. */
async function playTold(world: ClusterWorld): Promise<void> {
  const { starts } = await playEphemeral(world, EPHEMERAL, true, ', by webhook');
  expect(median(starts)).toBeLessThan(bound(BOUND_MS));
}

await describeWithLab('when a job starts and ends', { temporal: true, nodes: 'kubelet' }, (lab) => {
  together(
    async () => await ClusterWorld.open(lab, { webhook: false }),
    {
      [`${JOBS} jobs of a static runner: start and end within 2 s, but for one, and no question asked`]:
        playStatic,
      [`${EPHEMERAL} ephemeral runners: most within 2 s, and one request to the CI server for a whole life`]:
        playIdle,
      [`${EPHEMERAL} ephemeral runners whose jobs are there before them: most starts within 3.5 s, one request, too`]:
        playAwaited,
    },
    {
      timeoutMs: 600_000,
      afterwards: {
        ...cleanEnd,
        'nobody asked for anything else, whosever it is': async ({ simulator, runs }) => {
          expect(simulator.requestCounts().byStatus[REGISTRATION]).toBe(2 * EPHEMERAL);
          expect(
            simulator.requests().filter(({ path }) => !runs.some(({ key }) => path.includes(key))),
          ).toEqual([]);
        },
      },
    },
  );

  together(
    async () => await ClusterWorld.open(lab),
    {
      [`${EPHEMERAL} ephemeral runners whose jobs are there before them, with a webhook: most starts within 2 s, one request, too`]:
        playTold,
    },
    { timeoutMs: 600_000, afterwards: cleanEnd },
  );
});
