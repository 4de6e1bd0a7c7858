import { constants } from 'node:os';
import { parseDuration } from './duration.ts';

/** One step of a stop. */
export interface StopSignal {
  readonly signal: NodeJS.Signals;
  /** From the stop's start, in ms. */
  readonly afterMs: number;
}

/**
 * Reads `stop.signals`: signals separated by commas, each with an optional time from the stop's start, e.g. `SIGINT,SIGTERM@5s`.
 * Without times the grace is shared out evenly; the first one is sent at once in any case; SIGKILL at the grace's end needs no naming.
 * @throws RangeError naming what is wrong
 */
export function parseStopSignals(text: string, signalTimeoutMs: number): StopSignal[] {
  const words = text.split(',').map((word) => word.trim());
  let earliestMs = 0;
  return words.map((word, index) => {
    const [name = '', at] = word.split('@', 2);
    if (!(name in constants.signals)) throw new RangeError(`"${name}" is not a signal such as SIGINT`);
    if (name === 'SIGKILL' || name === 'SIGSTOP') throw new RangeError(`${name} cannot be handled; SIGKILL comes at the end of the grace anyway`);
    const afterMs = at === undefined ? Math.floor((signalTimeoutMs * index) / words.length) : parseDuration(at);
    if (index === 0 && afterMs !== 0) throw new RangeError('the first signal is sent at once: leave its time out');
    if (afterMs < earliestMs) throw new RangeError(`${name} would come before the signal named before it`);
    if (index > 0 && afterMs >= signalTimeoutMs) throw new RangeError(`${name} would come after the end of the grace`);
    earliestMs = afterMs;
    return { signal: name as NodeJS.Signals, afterMs };
  });
}
