import type { Output } from './output.ts';

/** Writes one event to the supervisor's log. */
export type Log = (level: 'error' | 'info', msg: string) => void;

/** One JSON line per event, with these three keys in this order: what reads Prow's entrypoint log reads this, too. */
export function eventLog(output: Output): Log {
  return (level, msg) => {
    void output.write(Buffer.from(`${JSON.stringify({ component: 'entrypoint', level, msg })}\n`));
  };
}
