/**
 * The floor: times of the same pods on the same machine in the same run, created and deleted by a
 * bare script, without Temporal, worker, Secrets and CI server. The speed of machines differs, and
 * that of one machine varies from hour to hour. The share of the floor varies less.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { BarePods } from './barePods.ts';
import { mapConcurrently } from './concurrency.ts';
import type { Pace } from './jobPace.ts';
import { percentile, roundTo } from './statistics.ts';
import { DEFAULT_TIMING } from './world.ts';

/** Number of pods that are created concurrently when their creation is not measured. */
const CONCURRENCY = 16;

const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

/**
 * Measures how many pods start a second. The startup time of a runner is added to that of the pods.
 * @returns pods a second
 */
export async function baselineScaleup(pods: BarePods, count: number): Promise<number> {
  const startedAt = Date.now();
  const created = await Promise.all(
    numbers(count).map(async () => await pods.create().then(() => Date.now())),
  );
  return roundTo(
    count / ((Math.max(...created) + DEFAULT_TIMING.startupMs - startedAt) / 1_000),
    1,
  );
}

/**
 * Measures the deletion of pods whose containers end together.
 * @returns time from the end of the containers until a pod is deleted (p95, ms)
 */
export async function baselineCompletion(pods: BarePods, count: number): Promise<number> {
  const names = await mapConcurrently(numbers(count), CONCURRENCY, async () => await pods.create());
  const startedAt = Date.now();
  const took = await Promise.all(
    names.map(async (name) => {
      await pods.end(name);
      await pods.remove(name);
      return Date.now() - startedAt;
    }),
  );
  return percentile(took, 0.95);
}

/**
 * Runs one pod for each job, at a constant rate.
 * @returns time from each request until the pod runs, plus the startup time of a runner (ms)
 */
export async function baselineQueue(
  pods: BarePods,
  { rate, count, jobMs }: Pace,
): Promise<number[]> {
  const startedAt = performance.now();
  return await Promise.all(
    numbers(count).map(async (job) => {
      await delay(Math.max(0, startedAt + (job * 1_000) / rate - performance.now()));
      const queuedAt = Date.now();
      const name = await pods.create();
      await delay(DEFAULT_TIMING.startupMs);
      const tookMs = Date.now() - queuedAt;
      await delay(jobMs);
      await pods.end(name);
      await pods.remove(name);
      return tookMs;
    }),
  );
}

/** Figures of the bare script for jobs of a set. */
export interface ChurnFloor {
  readonly jobsPerSecond: number;
  readonly goneP95Ms: number;
  readonly replacementP95Ms: number;
}

/** Keeps `count` pods. At every tick one of them ends, is deleted and is replaced. */
export async function baselineSteady(
  pods: BarePods,
  count: number,
  jobs: number,
  everyMs: number,
): Promise<Omit<ChurnFloor, 'jobsPerSecond'>> {
  const names = await mapConcurrently(numbers(count), CONCURRENCY, async () => await pods.create());
  const startedAt = performance.now();
  const turns = await Promise.all(
    numbers(jobs).map(async (job) => {
      await delay(Math.max(0, startedAt + job * everyMs - performance.now()));
      const name = names.shift();
      if (name === undefined)
        throw new Error('the bare script has no pod left: this machine is too slow for the rate');
      const finishedAt = Date.now();
      await pods.end(name);
      const replaced = pods.create().then(async (created) => {
        await delay(DEFAULT_TIMING.startupMs);
        names.push(created);
        return Date.now() - finishedAt;
      });
      await pods.remove(name);
      return { gone: Date.now() - finishedAt, replaced: await replaced };
    }),
  );
  return {
    goneP95Ms: percentile(
      turns.map(({ gone }) => gone),
      0.95,
    ),
    replacementP95Ms: percentile(
      turns.map(({ replaced }) => replaced),
      0.95,
    ),
  };
}

/** Keeps `count` pods, each for one job, until all jobs are done. */
export async function baselineChurn(
  pods: BarePods,
  count: number,
  jobs: number,
  jobMs: number,
): Promise<ChurnFloor> {
  const gone: number[] = [];
  const replaced: number[] = [];
  const first = await mapConcurrently(numbers(count), CONCURRENCY, async () => await pods.create());
  await delay(DEFAULT_TIMING.startupMs);
  const startedAt = Date.now();
  let left = jobs;
  let lastFinishedAt = startedAt;
  const runSlot = async (pod: string): Promise<void> => {
    for (let name = pod; left > 0;) {
      left--;
      await delay(jobMs);
      const finishedAt = (lastFinishedAt = Date.now());
      await pods.end(name);
      const [next] = await Promise.all([
        pods.create().then(async (created) => {
          await delay(DEFAULT_TIMING.startupMs);
          replaced.push(Date.now() - finishedAt);
          return created;
        }),
        pods.remove(name).then(() => gone.push(Date.now() - finishedAt)),
      ]);
      name = next;
    }
  };
  await Promise.all(first.map(runSlot));
  return {
    jobsPerSecond: roundTo(jobs / ((lastFinishedAt - startedAt) / 1_000), 1),
    goneP95Ms: percentile(gone, 0.95),
    replacementP95Ms: percentile(replaced, 0.95),
  };
}
