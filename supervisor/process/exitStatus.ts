import { constants } from 'node:os';

/** End of a child process, as reported by Node: one of the two is null. */
export interface ChildEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/**
 * Exit status of the supervisor itself: an exit code, or a signal that it sends to itself with the
 * default handler.
 */
export type ExitStatus =
  | { readonly kind: 'code'; readonly code: number }
  | { readonly kind: 'signal'; readonly signal: NodeJS.Signals };

/** Exit code of a command that could not be started, or did not finish before its timeout. */
export const EXIT_NOT_RUN = 127;

/**
 * Signals whose default action writes a core dump. The supervisor exits with 128+n instead of
 * ending by one of these signals: a core dump of the supervisor has no information, and could
 * overwrite that of the child.
 */
const DUMPING: ReadonlySet<NodeJS.Signals> = new Set([
  'SIGQUIT',
  'SIGILL',
  'SIGTRAP',
  'SIGABRT',
  'SIGIOT',
  'SIGBUS',
  'SIGFPE',
  'SIGSEGV',
  'SIGSYS',
  'SIGXCPU',
  'SIGXFSZ',
]);

/**
 * Returns the supervisor's exit status after the end of the child: the child's own status, in the
 * form that a waiting parent can see.
 */
export function exitStatusOf(end: ChildEnd): ExitStatus {
  if (end.signal === null) return { kind: 'code', code: end.code ?? EXIT_NOT_RUN };
  return DUMPING.has(end.signal)
    ? { kind: 'code', code: 128 + constants.signals[end.signal] }
    : { kind: 'signal', signal: end.signal };
}

/** Returns the number that a container runtime shows for this status. */
export function exitCodeOf(status: ExitStatus): number {
  return status.kind === 'code' ? status.code : 128 + constants.signals[status.signal];
}
