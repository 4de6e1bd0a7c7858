/** Loaded into a worker before anything else (`--import`): its wall clock shows another time for as long as the file in CHAOS_CLOCK says so, in ms. */
import { readFileSync } from 'node:fs';

const CHECK_INTERVAL_MS = 200;

const file = process.env['CHAOS_CLOCK'] ?? '';
const RealDate = Date;
let offsetMs = 0;

function look(): void {
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

look();
setInterval(look, CHECK_INTERVAL_MS).unref();
globalThis.Date = SteppedDate as DateConstructor;
