import { constants } from 'node:os';
import type { ExitStatus } from './exitStatus.ts';
import type { Pending } from './pending.ts';

/**
 * Time to wait for this process to end by its own signal (ms). PID 1 ignores such a signal, so it
 * exits with a code instead.
 */
const SELF_SIGNAL_MS = 200;

/**
 * Ends this process with the status. A signal that ended the child is sent to this process with the
 * default handler, so that a waiting parent sees the same wait status as for the child.
 */
export function exitProcess(status: ExitStatus, pending: Pending): void {
  if (status.kind === 'signal') {
    process.removeAllListeners(status.signal);
    process.kill(process.pid, status.signal);
    setTimeout(() => process.exit(128 + constants.signals[status.signal]), SELF_SIGNAL_MS);
    return;
  }
  // process.exit waits for a file operation that hangs. SIGKILL does not.
  if (pending.any) process.kill(process.pid, 'SIGKILL');
  process.exit(status.code);
}
