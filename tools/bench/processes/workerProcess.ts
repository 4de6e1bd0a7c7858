/** The worker as users run it, in a process of its own, and what it costs. */
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

export interface WorkerProcessOptions {
  readonly env: Readonly<Record<string, string>>;
  /** Its log and its errors go there. */
  readonly logFile: string;
  /** Writes a V8 CPU profile into this folder when the worker ends. */
  readonly cpuProfileDir?: string;
  /** Another build of it. @default the sources */
  readonly main?: string;
  /** More of Node's own options. */
  readonly nodeFlags?: readonly string[];
  /** Of the program. */
  readonly args?: readonly string[];
}

export class WorkerProcess {
  readonly #child: ChildProcess;
  readonly #started: Promise<{ readonly http: string; readonly webhook?: string }>;
  /** When the process was started (ms since the epoch). */
  readonly startedAt = Date.now();
  /** Settles when it has ended, however that was. */
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

  /** As Temporal shows it in histories. */
  get identityPrefix(): string {
    return `${this.pid}@`;
  }

  /** Waits until it polls and its watch is up to date. */
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

  /** Where it answers HTTP, once it has started. */
  async url(): Promise<string> {
    return (await this.#started).http;
  }

  /** Where it takes deliveries, once it has started. */
  async webhook(): Promise<URL> {
    return new URL('/webhooks/github', (await this.#started).webhook);
  }

  /** What its /metrics says now. */
  async metrics(): Promise<Sample[]> {
    const answer = await fetch(`${await this.url()}/metrics`);
    if (!answer.ok) throw new Error(`the worker's metrics answered ${answer.status}`);
    return parseMetrics(await answer.text());
  }

  /** Resident memory, in MiB. */
  async rssMiB(): Promise<number> {
    const match = /^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${this.pid}/status`, 'utf8'));
    if (!match) throw new Error(`/proc/${this.pid}/status has no VmRSS`);
    return Number(match[1]) / 1024;
  }

  /** CPU time used so far, all threads, in seconds. */
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
