import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { until } from './until.ts';

const MAIN = fileURLToPath(new URL('../../worker/main.ts', import.meta.url));

/** The worker as users run it: a process. */
export interface WorkerProcess {
  readonly pid: number;
  /** Lines of its log, parsed. */
  readonly log: readonly { level: string; msg: string; [field: string]: unknown }[];
  /** Lines of its standard error. */
  readonly errors: readonly string[];
  /** Its HTTP address, once it has started. */
  started(): Promise<string>;
  /** Address for deliveries, once it has started. */
  webhook(): URL;
  kill(signal: NodeJS.Signals): void;
  /** Exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals>;
}

/**
 * Returns settings for a worker with the process compute, a state folder of its own and any free
 * port.
 */
export async function processSettings(
  more: Record<string, string> = {},
): Promise<Record<string, string>> {
  const stateDir = await mkdtemp(join(tmpdir(), 'holdfast-worker-'));
  stateDirs.add(stateDir);
  return {
    HOLDFAST_COMPUTE: 'process',
    HOLDFAST_ALLOW_ANY_COMMAND: 'true',
    HOLDFAST_STATE_DIR: stateDir,
    HOLDFAST_HTTP_ADDRESS: '127.0.0.1:0',
    HOLDFAST_WEBHOOK_ADDRESS: '127.0.0.1:0',
    ...more,
  };
}

/**
 * @param settings - all of its HOLDFAST_* and TEMPORAL_* variables
 * @param program - replaces worker/main.ts, with its arguments; must log in the same way
 */
export function startWorkerProcess(
  settings: Readonly<Record<string, string>>,
  program: readonly string[] = [MAIN],
): WorkerProcess {
  const inherited = Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !/^(HOLDFAST|TEMPORAL)_|^NODE_OPTIONS$/.test(name),
    ),
  );
  const child = spawn(process.execPath, program, {
    env: { ...inherited, ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  const log: WorkerProcess['log'][number][] = [];
  const errors: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => log.push(parse(line)));
  createInterface({ input: child.stderr }).on('line', (line) => errors.push(line));
  // `close` instead of `exit`, because all of its output has been read by then.
  const ended = once(child, 'close').then(([code, signal]) => {
    running.delete(child);
    return (code ?? signal) as number | NodeJS.Signals;
  });
  const startedLine = (): WorkerProcess['log'][number] | undefined =>
    log.find(({ msg }) => /^(worker|webhook) started$/.test(msg));
  let over = false;
  void ended.then(() => (over = true));
  return {
    pid: child.pid ?? 0,
    log,
    errors,
    ended,
    kill: (signal) => void child.kill(signal),
    webhook: () => new URL('/webhooks/github', String(startedLine()?.['webhook'])),
    async started() {
      await until(
        'the worker to start',
        () => over || startedLine() !== undefined,
        () => errors.join('\n'),
      );
      const address = startedLine()?.['http'];
      if (typeof address !== 'string') throw new Error(`the worker ended: ${errors.join('\n')}`);
      await until(
        'the worker to be ready',
        async () => (await fetch(`${address}/readyz`)).status === 200,
        () => JSON.stringify(log),
      );
      return address;
    },
  };
}

const running = new Set<ChildProcess>();
const stateDirs = new Set<string>();

/** For afterEach: kills processes that a failed test left, and removes the state folders. */
export async function killWorkerProcesses(): Promise<void> {
  await Promise.all(
    [...running].map(async (child) => {
      const ended = once(child, 'close');
      child.kill('SIGKILL');
      await ended;
    }),
  );
  for (const dir of stateDirs) await rm(dir, { recursive: true, force: true });
  stateDirs.clear();
}

function parse(line: string): WorkerProcess['log'][number] {
  try {
    return JSON.parse(line) as WorkerProcess['log'][number];
  } catch {
    return { level: 'unparsed', msg: line };
  }
}
