/** Ends the process when a case neither ends nor gives the thread back: nobody else could tell which one it was. */
import { writeSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { isMainThread, Worker, workerData } from 'node:worker_threads';

/** Which case is under way. */
export interface Watch {
  begin(target: string, seed: number, path: string): void;
  end(): void;
  close(): Promise<void>;
}

/** CPU of this process, far more than a case may take: a shorter one that ends is found by the run itself. A busy machine is no finding. */
const PATIENCE_MS = 15_000;
/** Of one that waits for what does not come, by the clock. */
const IDLE_PATIENCE_MS = 600_000;
const LOOK_MS = 250;
const LONGEST_NAME = 200;

interface Shared {
  /** How many cases have begun; 0: none is under way. */
  readonly count: Int32Array<SharedArrayBuffer>;
  readonly name: Uint8Array<SharedArrayBuffer>;
}

export function startWatchdog(): Watch {
  const shared: Shared = { count: new Int32Array(new SharedArrayBuffer(4)), name: new Uint8Array(new SharedArrayBuffer(LONGEST_NAME)) };
  const worker = new Worker(new URL(import.meta.url), { workerData: shared });
  const encoder = new TextEncoder();
  let count = 0;
  return {
    begin(target, seed, path) {
      // Copied: what is shared cannot be encoded into. The case's path changes with each.
      shared.name.fill(0);
      shared.name.set(encoder.encode(`--target ${target} --seed ${seed} --path ${path}`).subarray(0, LONGEST_NAME));
      Atomics.store(shared.count, 0, ++count);
    },
    end: () => void Atomics.store(shared.count, 0, 0),
    close: async () => void (await worker.terminate()),
  };
}

async function watch({ count, name }: Shared): Promise<never> {
  let last = { count: 0, cpuMs: 0, at: 0 };
  for (;;) {
    await delay(LOOK_MS);
    const { user, system } = process.cpuUsage();
    const now = { count: Atomics.load(count, 0), cpuMs: (user + system) / 1_000, at: performance.now() };
    if (now.count !== last.count || now.count === 0) last = now;
    if (now.cpuMs - last.cpuMs < PATIENCE_MS && now.at - last.at < IDLE_PATIENCE_MS) continue;
    writeSync(2, `fuzz: a case does not end; see its input with: npm run fuzz -- ${Buffer.from(name).toString().replaceAll('\0', '')}\n`);
    process.kill(process.pid, 'SIGKILL'); // the main thread runs nothing any more
  }
}

if (!isMainThread && workerData !== null) await watch(workerData as Shared);
