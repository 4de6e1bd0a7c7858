/**
 * Parses `stop.signals`: the sequence of signals of a stop. Admission and the supervisor use the
 * same parser, so the supervisor accepts everything that admission accepts.
 */
import { parseDuration } from './duration.ts';
import { truncate } from './displayText.ts';

/**
 * Signals that can be sent to a process of a Linux container by name. They are those of the machine
 * that runs the pod, not of the one that runs this code.
 */
const SIGNALS = [
  'SIGHUP',
  'SIGINT',
  'SIGQUIT',
  'SIGILL',
  'SIGTRAP',
  'SIGABRT',
  'SIGIOT',
  'SIGBUS',
  'SIGFPE',
  'SIGUSR1',
  'SIGSEGV',
  'SIGUSR2',
  'SIGPIPE',
  'SIGALRM',
  'SIGTERM',
  'SIGSTKFLT',
  'SIGCHLD',
  'SIGCONT',
  'SIGTSTP',
  'SIGTTIN',
  'SIGTTOU',
  'SIGURG',
  'SIGXCPU',
  'SIGXFSZ',
  'SIGVTALRM',
  'SIGPROF',
  'SIGWINCH',
  'SIGIO',
  'SIGPOLL',
  'SIGPWR',
  'SIGSYS',
] as const;
const UNHANDLED = ['SIGKILL', 'SIGSTOP'];

/** Maximum length of a quotation in an error (characters). */
const QUOTED = 60;

/** One signal of a stop. */
export interface StopSignal {
  readonly signal: (typeof SIGNALS)[number];
  /** Time since the start of the stop (ms). */
  readonly afterMs: number;
}

/**
 * Parses signals separated by commas, each with an optional time since the start of the stop, such
 * as `SIGINT,SIGTERM@5s`. Without times, the signals are spread evenly over the grace period. The
 * first one is always sent immediately. SIGKILL follows at the end of the grace period by itself.
 * @param signalTimeoutMs - grace period (ms)
 * @throws RangeError with the error and its fix
 */
export function parseStopSignals(text: string, signalTimeoutMs: number): StopSignal[] {
  const words = text.split(',').map((word) => word.trim());
  let earliestMs = 0;
  return words.map((word, index) => {
    const [name = '', ...times] = word.split('@');
    if (UNHANDLED.includes(name))
      throw new RangeError(
        `${name} cannot be handled: leave it out; SIGKILL comes at the end of the grace anyway`,
      );
    const signal = SIGNALS.find((known) => known === name);
    if (signal === undefined)
      throw new RangeError(
        `"${truncate(name, QUOTED)}" is not a signal: write for example SIGINT,SIGTERM@5s`,
      );
    const afterMs =
      times.length === 0
        ? Math.floor((signalTimeoutMs * index) / words.length)
        : parseDuration(times.join('@'));
    if (afterMs === undefined)
      throw new RangeError(
        `"${truncate(times.join('@'), QUOTED)}" is not a time: write for example ${name}@5s`,
      );
    if (index === 0 && afterMs !== 0)
      throw new RangeError(
        `${name} is the first signal, which is sent immediately; remove its time`,
      );
    if (afterMs < earliestMs)
      throw new RangeError(
        `${name} would come before the signal named before it: write them in the order of their times`,
      );
    if (index > 0 && afterMs >= signalTimeoutMs)
      throw new RangeError(
        `${name} would come after the end of the grace: choose an earlier time, or a longer grace`,
      );
    earliestMs = afterMs;
    return { signal, afterMs };
  });
}
