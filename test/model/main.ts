/**
 * `npm run explore`: the life as a model, explored. Ends with 1 when it finds something wrong that is not known (known.ts).
 *
 *     npm run explore -- [--depth N] [--states N] [--setup NAME]… [--json]
 *     npm run explore -- --mutations [--table NAME]… [--states N] [--json]
 */
import { parseArgs } from 'node:util';
import { explore, keyOf, SETUPS } from './explore.ts';
import { isKnown } from './known.ts';
import { MUTATED, mutate } from './mutations.ts';
import { tell } from './story.ts';

const { values } = parseArgs({
  options: {
    depth: { type: 'string', default: '1' },
    states: { type: 'string', default: '1000000' },
    setup: { type: 'string', multiple: true },
    table: { type: 'string', multiple: true },
    mutations: { type: 'boolean', default: false },
    stories: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});

const setups = SETUPS.filter((setup) => values.setup?.includes(setup) ?? true);
const limits = { depth: Number(values.depth), states: Number(values.states), setups };
const write = (line: string): void => void process.stdout.write(`${line}\n`);

if (values.mutations) await runMutations();
else runExploration();

function runExploration(): void {
  const cpu = process.cpuUsage();
  const { mind, wrongs, ...figures } = explore(limits);
  const cpuSeconds = process.cpuUsage(cpu).user / 1e6;
  const unknown = wrongs.filter((wrong) => !isKnown(wrong));
  if (values.json) {
    write(JSON.stringify({ ...figures, cpuSeconds, wrongs: wrongs.map((wrong) => ({ setup: wrong.setup, what: wrong.what, count: wrong.count, steps: wrong.story.length - 1, known: isKnown(wrong) })) }, undefined, 1));
  } else {
    write(`${figures.states} states, ${figures.steps} steps, ${figures.ends} ends; every story with at most ${figures.depth} mishaps${figures.complete ? '' : ', as far as the limit of states allows'}; ${cpuSeconds.toFixed(1)} s of CPU`);
    for (const wrong of wrongs) write(`${isKnown(wrong) ? 'known' : 'WRONG'}  ${keyOf(wrong)} (in ${wrong.count} states)`);
    for (const wrong of values.stories ? wrongs : unknown) write(tell(wrong, mind));
  }
  process.exitCode = unknown.length === 0 ? 0 : 1;
}

async function runMutations(): Promise<void> {
  const all = [];
  for await (const mutation of mutate(limits, MUTATED.filter((table) => values.table?.includes(table) ?? true))) {
    all.push(mutation);
    const { table, line, condition, change, caughtBy } = mutation;
    if (!values.json) write(`${caughtBy === undefined ? 'MISSED' : 'caught'}  ${table}:${line}  ${change.padEnd(7)}  ${condition.slice(0, 70).padEnd(70)}  ${caughtBy ?? ''}`);
  }
  const caught = all.filter(({ caughtBy }) => caughtBy !== undefined).length;
  write(values.json ? JSON.stringify(all, undefined, 1) : `${caught} of ${all.length} caught`);
}
