import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { WorkerProcess } from '../bench/processes/workerProcess.ts';
import { freePort } from '../lab/ports.ts';
import { compiledWorker } from './compiledWorker.ts';

const CLOCK_SHIM = fileURLToPath(new URL('./clockShim.ts', import.meta.url));
/** Delay before a worker is restarted, as in a Deployment (ms). */
const RESTART_AFTER_MS = 1_000;

interface Slot {
  readonly number: number;
  /** Address for webhook deliveries. */
  readonly url: string;
  readonly clockFile: string;
  readonly settings: Readonly<Record<string, string>>;
  /** Program of a compiled build. @default the sources */
  readonly main?: string;
  worker: WorkerProcess | undefined;
  /** Whether a fault prevents the restart. */
  down: boolean;
}

/**
 * Worker processes of a run, alternately of two builds. A worker that ends is restarted, as by a
 * Deployment, unless a fault prevents it.
 */
export class Workers {
  readonly #slots: readonly Slot[];
  readonly #folder: string;
  readonly #receiver: (url: string) => void;
  #closed = false;

  private constructor(slots: readonly Slot[], folder: string, receiver: (url: string) => void) {
    this.#slots = slots;
    this.#folder = folder;
    this.#receiver = receiver;
  }

  /**
   * Starts the workers, and waits until they are ready.
   * @param folder - directory for logs and clocks
   * @param settingsOf - returns additional settings of a worker
   * @param receiver - called with the address for deliveries, whenever another worker receives them
   */
  static async start(
    count: number,
    settings: Readonly<Record<string, string>>,
    folder: string,
    settingsOf: (number: number) => Readonly<Record<string, string>>,
    receiver: (url: string) => void,
  ): Promise<Workers> {
    const slots: Slot[] = [];
    const main = await compiledWorker();
    for (let number = 0; number < count; number++) {
      const port = await freePort();
      const clockFile = join(folder, `clock-${number}`);
      await writeFile(clockFile, '0');
      slots.push({
        number,
        url: `http://127.0.0.1:${port}`,
        clockFile,
        settings: {
          ...settings,
          ...settingsOf(number),
          HOLDFAST_HTTP_ADDRESS: '127.0.0.1:0',
          HOLDFAST_WEBHOOK_ADDRESS: `127.0.0.1:${port}`,
        },
        ...(number % 2 === 1 ? { main } : {}),
        worker: undefined,
        down: false,
      });
    }
    const workers = new Workers(slots, folder, receiver);
    for (const slot of slots) workers.#spawn(slot);
    await workers.ready();
    return workers;
  }

  get count(): number {
    return this.#slots.length;
  }

  /** Sends a signal that does not end the worker: SIGSTOP, SIGCONT. */
  signal(number: number, signal: NodeJS.Signals): void {
    this.#slot(number).worker?.signal(signal);
  }

  /** Ends a worker with this signal, and prevents its restart. */
  async stop(number: number, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const slot = this.#slot(number);
    slot.down = true;
    const { worker } = slot;
    worker?.signal(signal);
    await worker?.ended;
    this.#receive();
  }

  /** Starts a worker again. Does not wait until it is ready. */
  start(number: number): void {
    const slot = this.#slot(number);
    slot.down = false;
    if (slot.worker === undefined) this.#spawn(slot);
  }

  /**
   * Sets the error of a worker's clock.
   * @param offsetMs - difference from the real time (ms)
   */
  async stepClock(number: number, offsetMs: number): Promise<void> {
    await writeFile(this.#slot(number).clockFile, String(offsetMs));
  }

  /**
   * Waits until all workers poll and their watches are up to date.
   * @throws Error if a worker does not become ready
   */
  async ready(): Promise<void> {
    await Promise.all(this.#slots.map(async ({ worker }) => await worker?.ready()));
  }

  /** Returns the number of the first worker whose metric of that name is above 0, or -1. */
  async find(metric: string): Promise<number> {
    const found = await Promise.all(
      this.#slots.map(async ({ worker }) =>
        ((await worker?.metrics().catch(() => [])) ?? []).some(
          ({ name, value }) => name === metric && value > 0,
        ),
      ),
    );
    return found.indexOf(true);
  }

  /**
   * Waits until one of the workers polls.
   * @throws AggregateError if no worker becomes ready
   */
  async anyReady(): Promise<void> {
    await Promise.any(this.#slots.flatMap(({ worker }) => worker?.ready() ?? []));
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(
      this.#slots.map(async ({ worker }) => {
        worker?.signal('SIGKILL');
        await worker?.ended;
      }),
    );
  }

  #spawn(slot: Slot): void {
    const worker = new WorkerProcess({
      env: { ...slot.settings, CHAOS_CLOCK: slot.clockFile },
      logFile: join(this.#folder, `worker-${slot.number}.log`),
      nodeFlags: [`--import=${CLOCK_SHIM}`],
      ...omitUndefined({ main: slot.main }),
    });
    slot.worker = worker;
    this.#receive();
    void worker.ended.then(async () => {
      slot.worker = undefined;
      if (slot.down) return;
      await delay(RESTART_AFTER_MS);
      if (!slot.down && !this.#closed && slot.worker === undefined) this.#spawn(slot);
    });
  }

  /** Routes deliveries to the first running worker, as a load balancer does. */
  #receive(): void {
    const running = this.#slots.find(({ worker, down }) => worker !== undefined && !down);
    if (running !== undefined) this.#receiver(running.url);
  }

  #slot(number: number): Slot {
    const slot = this.#slots[number];
    if (slot === undefined) throw new Error(`worker ${number} does not exist`);
    return slot;
  }
}
