/**
 * Changes the wall clock of a worker by the offset in the file CHAOS_CLOCK (ms). Loaded before the
 * worker with `--import`.
 */
import { readFileSync } from 'node:fs';

const CHECK_INTERVAL_MS = 200;

const file = process.env['CHAOS_CLOCK'] ?? '';
const RealDate = Date;
let offsetMs = 0;

function readOffset(): void {
  offsetMs = Number(readFileSync(file, 'utf8')) || 0;
}

class SteppedDate extends RealDate {
  constructor(...args: [] | ConstructorParameters<typeof Date>) {
    if (args.length === 0) super(RealDate.now() + offsetMs);
    else super(...(args as ConstructorParameters<typeof Date>));
  }

  static override now(): number {
    return RealDate.now() + offsetMs;
  }
}

readOffset();
setInterval(readOffset, CHECK_INTERVAL_MS).unref();
globalThis.Date = SteppedDate as DateConstructor;
