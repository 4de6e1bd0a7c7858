/**
 * Runs a target in a thread of its own, which is terminated if a case does not end, blocks the
 * thread, or crashes it.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import fc from 'fast-check';
import { fuzz, formatInput, type FuzzOptions, type TargetReport } from './fuzz.ts';
import type { FuzzTarget } from './target.ts';

/** Options of {@link fuzzInThread}. */
export interface ThreadOptions extends FuzzOptions {
  /** URL of the module that exports {@link FuzzTarget}s as `TARGETS`. */
  readonly targets: URL;
}

/**
 * Maximum CPU time of this process for a case (ms), so that a busy machine causes no finding. A
 * case that ends by itself is found and shrunk by the run itself.
 */
const TIMEOUT_MS = 5_000;
/** Maximum wall-clock time for a case that waits for something that does not come (ms). */
const IDLE_TIMEOUT_MS = 120_000;
const CHECK_INTERVAL_MS = 250;
/** Stack size as in the main thread, where the product runs. Deeper nesting fails there at once. */
const STACK_MB = 1;

interface Job extends FuzzOptions {
  readonly targets: string;
  readonly target: string;
  /** Number of cases that have started, shrunk ones included, and index of the current case. */
  readonly progress: Int32Array<SharedArrayBuffer>;
}

/**
 * Runs a target and returns its report.
 * @throws Error if the target cannot start
 */
export async function fuzzInThread(
  { name }: Pick<FuzzTarget, 'name'>,
  { targets, ...options }: ThreadOptions,
): Promise<TargetReport> {
  const progress = new Int32Array(new SharedArrayBuffer(8));
  const startedAt = performance.now();
  const worker = new Worker(new URL(import.meta.url), {
    resourceLimits: { stackSizeMb: STACK_MB },
    workerData: { ...options, targets: targets.href, target: name, progress } satisfies Job,
  });
  const ended = new AbortController();
  const report = new Promise<TargetReport | string>((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', (error) =>
      Atomics.load(progress, 0) === 0
        ? reject(error as Error)
        : resolve(`ended the thread: ${String(error)}`),
    );
    worker.once('exit', (code) => resolve(`ended the thread, with status ${code}`));
  });
  try {
    const found = await Promise.race([report, hang(progress, ended.signal)]);
    if (typeof found !== 'string') return found;
    const run = Atomics.load(progress, 1);
    const path = options.path ?? String(run);
    await worker.terminate();
    // Printed first, because describing the input may not end.
    console.error(`${name}, seed ${options.seed}, path ${path}: ${found}`);
    const finding = { path, input: await inputOf(name, targets, options.seed, path), error: found };
    return {
      target: name,
      seed: options.seed,
      cases: run + 1,
      seconds: (performance.now() - startedAt) / 1_000,
      slowestMs: TIMEOUT_MS,
      finding,
    };
  } finally {
    ended.abort();
    await worker.terminate();
  }
}

/** Resolves with the error if no further case starts. */
async function hang(progress: Int32Array<SharedArrayBuffer>, signal: AbortSignal): Promise<string> {
  let last = { begun: 0, cpuMs: 0, at: 0 };
  for (;;) {
    await delay(CHECK_INTERVAL_MS, undefined, { signal });
    const { user, system } = process.cpuUsage();
    const now = {
      begun: Atomics.load(progress, 0),
      cpuMs: (user + system) / 1_000,
      at: performance.now(),
    };
    if (now.begun !== last.begun || now.begun === 0) last = now;
    if (now.cpuMs - last.cpuMs >= TIMEOUT_MS) return `did not end within ${TIMEOUT_MS} ms of CPU`;
    if (now.at - last.at >= IDLE_TIMEOUT_MS)
      return `waited for ${IDLE_TIMEOUT_MS / 1_000} s without CPU use`;
  }
}

async function inputOf(name: string, targets: URL, seed: number, path: string): Promise<string> {
  const { inputs, close } = await (await targetOf(name, targets)).open();
  try {
    return formatInput(fc.sample(inputs, { seed, path, numRuns: 1 })[0]);
  } finally {
    await close?.();
  }
}

async function targetOf(name: string, targets: URL): Promise<FuzzTarget> {
  const { TARGETS } = (await import(targets.href)) as { TARGETS: readonly FuzzTarget[] };
  const found = TARGETS.find((each) => each.name === name);
  if (found === undefined) throw new Error(`there is no target ${name}`);
  return found;
}

if (!isMainThread && workerData !== null) {
  const { targets, target, progress, ...options } = workerData as Job;
  // A pending wait of a case does not keep a process alive by itself.
  const alive = setInterval(() => undefined, IDLE_TIMEOUT_MS);
  const report = await fuzz(await targetOf(target, new URL(targets)), options, (run) => {
    Atomics.store(progress, 1, run);
    Atomics.add(progress, 0, 1);
  });
  clearInterval(alive);
  parentPort?.postMessage(report);
}
