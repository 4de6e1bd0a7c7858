import { explore, SETUPS } from './explore.ts';
import { tell } from './story.ts';
import type { Setup } from './state.ts';
const [arg, depth = '2', which] = process.argv.slice(2);
const r = explore({ setups: arg ? [arg as Setup] : SETUPS, states: 3000000, depth: Number(depth) });
process.stdout.write(`${r.states} states, ${r.steps} steps, depth ${r.depth}, complete ${r.complete}, ${r.seconds.toFixed(1)} s (cpu ${process.cpuUsage().user / 1e6}), ends ${r.ends}\n`);
for (const w of r.wrongs) process.stdout.write(`${w.setup}: ${w.what} (${w.count}; ${w.story.length})\n`);
if (which !== undefined) for (const w of r.wrongs) if (w.what.includes(which)) process.stdout.write(tell(w, r.mind));
