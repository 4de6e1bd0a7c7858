/** `stop.signals`: what a stop sends in place of one signal. Read by admission and by the supervisor alike: what the one lets pass the other takes. */
import { parseDuration } from './duration.ts';
import { truncate } from './displayText.ts';

/** Signals that a Linux container's process can be sent by name: of the machine that runs the pod, not of the one that reads this. */
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

/** Of what is quoted in an error, in characters: enough to find it again. */
const QUOTED = 60;

/** One step of a stop. */
export interface StopSignal {
  readonly signal: (typeof SIGNALS)[number];
  /** From the stop's start, in ms. */
  readonly afterMs: number;
}

/**
 * Reads signals separated by commas, each with an optional time from the stop's start, e.g. `SIGINT,SIGTERM@5s`. Without times the grace is
 * shared out evenly; the first one is sent at once in any case; SIGKILL at the grace's end needs no naming.
 * @param signalTimeoutMs - the grace
 * @throws RangeError naming what is wrong, and what to write instead
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
        `${name} is the first signal, which is sent at once: leave its time out`,
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
