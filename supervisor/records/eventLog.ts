import type { Output } from './output.ts';

/** Writes one event to the supervisor's log. */
export type Log = (level: 'error' | 'info', msg: string) => void;

/**
 * Returns a log that writes one JSON line per event, with these three keys in this order. Tools
 * that read the log of Prow's entrypoint can read this log as well.
 */
export function eventLog(output: Output): Log {
  return (level, msg) => {
    void output.write(Buffer.from(`${JSON.stringify({ component: 'entrypoint', level, msg })}\n`));
  };
}
