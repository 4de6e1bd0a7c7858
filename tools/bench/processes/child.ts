/** Child processes of a benchmark. Those still running at the end of the benchmark are killed. */
import { once } from 'node:events';
import type { ChildProcess } from 'node:child_process';

const running = new Set<ChildProcess>();

process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Registers a child to be killed at the end of the benchmark. */
export function track<T extends ChildProcess>(child: T): T {
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

/**
 * Sends a signal and waits for the end. Sends SIGKILL after `timeoutMs`. Does nothing if the child
 * has ended.
 */
export async function end(
  child: ChildProcess,
  signal: NodeJS.Signals,
  timeoutMs = 10_000,
): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill(signal);
  const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
  await ended;
  clearTimeout(timer);
}

/**
 * Returns the environment for a child: that of this process without variables that would change the
 * measurement.
 * @param keep - names of such variables to keep
 */
export function cleanEnvironment(keep: RegExp): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) =>
        keep.test(name) || !/^(HOLDFAST|TEMPORAL)_|^(NODE_OPTIONS|KUBECONFIG)$/.test(name),
    ),
  );
}
