import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { WorkerProcess } from '../bench/processes/workerProcess.ts';
import { freePort } from '../lab/ports.ts';
import { compiledWorker } from './compiledWorker.ts';

const CLOCK_SHIM = fileURLToPath(new URL('./clockShim.ts', import.meta.url));
/** As a Deployment waits before it starts a container again. */
const RESTART_AFTER_MS = 1_000;

interface Slot {
  readonly number: number;
  /** Where it takes deliveries. */
  readonly url: string;
  readonly clockFile: string;
  readonly settings: Readonly<Record<string, string>>;
  /** Another build than the sources. */
  readonly main?: string;
  worker: WorkerProcess | undefined;
  /** A fault keeps it down. */
  down: boolean;
}

/** The workers of a run, processes as users run them, of two builds by turns: one that ends is started again, as a Deployment does, unless a fault keeps it down. */
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
   * @param folder - for logs and clocks
   * @param settingsOf - more settings of each worker
   * @param receiver - told the address of a worker to which deliveries may go, whenever that is another one
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

  /** Sends a signal that leaves it in its place: SIGSTOP, SIGCONT. */
  signal(number: number, signal: NodeJS.Signals): void {
    this.#slot(number).worker?.signal(signal);
  }

  /** Ends it with this signal, and keeps it down. */
  async stop(number: number, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const slot = this.#slot(number);
    slot.down = true;
    const { worker } = slot;
    worker?.signal(signal);
    await worker?.ended;
    this.#receive();
  }

  /** Starts it again; it is ready some time later. */
  start(number: number): void {
    const slot = this.#slot(number);
    slot.down = false;
    if (slot.worker === undefined) this.#spawn(slot);
  }

  /** @param offsetMs - by how much its clock is wrong from now on */
  async stepClock(number: number, offsetMs: number): Promise<void> {
    await writeFile(this.#slot(number).clockFile, String(offsetMs));
  }

  /** Waits until all poll, and their watches are up to date. @throws Error when one does not come up */
  async ready(): Promise<void> {
    await Promise.all(this.#slots.map(async ({ worker }) => await worker?.ready()));
  }

  /** The number of the worker whose metric of that name is not 0, or -1. */
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

  /** Waits until one of them polls. @throws AggregateError when none comes up */
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

  /** A load balancer sends to the first that is there. */
  #receive(): void {
    const there = this.#slots.find(({ worker, down }) => worker !== undefined && !down);
    if (there !== undefined) this.#receiver(there.url);
  }

  #slot(number: number): Slot {
    const slot = this.#slots[number];
    if (slot === undefined) throw new Error(`there is no worker ${number}`);
    return slot;
  }
}
