/** Child processes of a benchmark. What is still running when the benchmark ends, however it ends, is killed. */
import { once } from 'node:events';
import type { ChildProcess } from 'node:child_process';

const running = new Set<ChildProcess>();

process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Looks after the child until it has ended. */
export function track<T extends ChildProcess>(child: T): T {
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

/** Sends the signal and waits for the end; SIGKILL after `patienceMs`. One that has ended already is fine. */
export async function end(
  child: ChildProcess,
  signal: NodeJS.Signals,
  patienceMs = 10_000,
): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill(signal);
  const timer = setTimeout(() => child.kill('SIGKILL'), patienceMs);
  await ended;
  clearTimeout(timer);
}

/** The environment for a child: ours without what would change it behind the benchmark's back. */
export function cleanEnvironment(keep: RegExp): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) =>
        keep.test(name) || !/^(HOLDFAST|TEMPORAL)_|^(NODE_OPTIONS|KUBECONFIG)$/.test(name),
    ),
  );
}
