/** The worker as a child process, as users run it, and its memory and CPU time. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { cpuSecondsOf } from '../cpuAccount.ts';
import { cleanEnvironment, end, track } from './child.ts';
import { parseMetrics, type Sample } from '../metrics.ts';

const MAIN = fileURLToPath(new URL('../../../worker/main.ts', import.meta.url));
const READY_WITHIN_MS = 60_000;

/** Options of {@link WorkerProcess}. */
export interface WorkerProcessOptions {
  readonly env: Readonly<Record<string, string>>;
  /** File for the log and the errors of the worker. */
  readonly logFile: string;
  /** Directory for a V8 CPU profile, which is written when the worker ends. */
  readonly cpuProfileDir?: string;
  /** Path of the worker's program. @default the sources */
  readonly main?: string;
  /** Additional options of Node.js. */
  readonly nodeFlags?: readonly string[];
  /** Arguments of the program. */
  readonly args?: readonly string[];
}

/** A worker as a child process. */
export class WorkerProcess {
  readonly #child: ChildProcess;
  readonly #started: Promise<{ readonly http: string; readonly webhook?: string }>;
  /** Start of the process (ms since the epoch). */
  readonly startedAt = Date.now();
  /** Resolves when the process has ended. */
  readonly ended: Promise<unknown>;

  constructor({
    env,
    logFile,
    cpuProfileDir,
    nodeFlags = [],
    main = MAIN,
    args = [],
  }: WorkerProcessOptions) {
    const flags = [
      ...nodeFlags,
      ...(cpuProfileDir === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${cpuProfileDir}`]),
    ];
    const inherited = cleanEnvironment(/^HOLDFAST_(MAX_|LOG_LEVEL)/);
    this.#child = track(
      spawn(process.execPath, [...flags, main, ...args], {
        env: { ...inherited, ...env },
        stdio: ['ignore', 'pipe', 'pipe'],
      }),
    );
    this.ended = once(this.#child, 'exit');
    const log = createWriteStream(logFile, { flags: 'a' });
    const { stdout, stderr } = this.#child;
    if (!stdout || !stderr) throw new Error('the worker has no output');
    stderr.pipe(log, { end: false });
    this.#started = new Promise((resolve, reject) => {
      createInterface({ input: stdout }).on('line', (line) => {
        log.write(`${line}\n`);
        if (/"(worker|webhook) started"/.test(line)) resolve(JSON.parse(line) as { http: string });
      });
      this.#child.once('exit', (code, signal) =>
        reject(new Error(`the worker ended (${code ?? signal}); see ${logFile}`)),
      );
    });
    this.#started.catch(() => undefined); // reported by ready()
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Prefix of its identity in Temporal's histories. */
  get identityPrefix(): string {
    return `${this.pid}@`;
  }

  /** Waits until the worker polls and its watch is up to date. */
  async ready(): Promise<this> {
    const { http: url } = await this.#started;
    const deadline = Date.now() + READY_WITHIN_MS;
    for (;;) {
      const answer = await fetch(`${url}/readyz`).catch(() => undefined);
      if (answer?.status === 200) return this;
      if (Date.now() > deadline)
        throw new Error(
          `the worker was not ready within ${READY_WITHIN_MS / 1000} s: ${answer === undefined ? 'no answer' : await answer.text()}`,
        );
      await delay(50);
    }
  }

  /** Returns its HTTP address, once it has started. */
  async url(): Promise<string> {
    return (await this.#started).http;
  }

  /** Returns its address for webhook deliveries, once it has started. */
  async webhook(): Promise<URL> {
    return new URL('/webhooks/github', (await this.#started).webhook);
  }

  /** Returns its current metrics. */
  async metrics(): Promise<Sample[]> {
    const answer = await fetch(`${await this.url()}/metrics`);
    if (!answer.ok) throw new Error(`failed to read the worker's metrics: ${answer.status}`);
    return parseMetrics(await answer.text());
  }

  /** Returns its resident memory (MiB). */
  async rssMiB(): Promise<number> {
    const match = /^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${this.pid}/status`, 'utf8'));
    if (!match) throw new Error(`/proc/${this.pid}/status has no VmRSS`);
    return Number(match[1]) / 1024;
  }

  /** Returns its CPU time, all threads included (s). */
  async cpuSeconds(): Promise<number> {
    return await cpuSecondsOf(this.pid);
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async kill(): Promise<void> {
    this.signal('SIGKILL');
    await this.ended;
  }

  async stop(): Promise<void> {
    await end(this.#child, 'SIGTERM', 20_000);
  }
}
