import { constants } from 'node:os';

/** How a child process ended, as Node tells it: one of the two is null. */
export interface ChildEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** How the supervisor itself ends: by an exit code, or by sending itself a signal with the default handler. */
export type ExitStatus =
  | { readonly kind: 'code'; readonly code: number }
  | { readonly kind: 'signal'; readonly signal: NodeJS.Signals };

/** Could not be started, or did not finish before its timeout. */
export const EXIT_NOT_RUN = 127;

/**
 * Signals whose default action writes a core dump. The supervisor says 128+n for these instead of dying of them: a core of the
 * supervisor tells nothing, and could overwrite the child's own.
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

/** The supervisor's own end after a child that ended so; the child's own status, in the form a waiting parent can see. */
export function exitStatusOf(end: ChildEnd): ExitStatus {
  if (end.signal === null) return { kind: 'code', code: end.code ?? EXIT_NOT_RUN };
  return DUMPING.has(end.signal)
    ? { kind: 'code', code: 128 + constants.signals[end.signal] }
    : { kind: 'signal', signal: end.signal };
}

/** The number that a container runtime shows for this status. */
export function exitCodeOf(status: ExitStatus): number {
  return status.kind === 'code' ? status.code : 128 + constants.signals[status.signal];
}
