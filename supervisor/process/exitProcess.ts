import { constants } from 'node:os';
import type { ExitStatus } from './exitStatus.ts';
import type { Pending } from './pending.ts';

/** How long a signal to ourselves may take, in ms. PID 1 is immune to its own. */
const SELF_SIGNAL_MS = 200;

/**
 * Ends this process with the status. A child's signal becomes our own, with the default handler, so that a waiting parent sees the
 * same wait status as the child's.
 */
export function exitProcess(status: ExitStatus, pending: Pending): void {
  if (status.kind === 'signal') {
    process.removeAllListeners(status.signal);
    process.kill(process.pid, status.signal);
    setTimeout(() => process.exit(128 + constants.signals[status.signal]), SELF_SIGNAL_MS);
    return;
  }
  // Node's exit would wait for the thread that hangs in a file operation. Only SIGKILL does not.
  if (pending.any) process.kill(process.pid, 'SIGKILL');
  process.exit(status.code);
}
