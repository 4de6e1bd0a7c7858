/**
 * `npm run explore`: the life as a model, explored. Ends with 1 when it finds something wrong that is not known (known.ts), or when neither it
 * nor the tables' own tests catch a mutant.
 *
 *     npm run explore -- [--depth N] [--states N] [--setup NAME]… [--stories] [--json]
 *     npm run explore -- --pairs [--seed N] [--seconds N] [--states N] [--setup NAME]…
 *     npm run explore -- --mutations [--table NAME]… [--setup NAME]… [--depth N] [--states N] [--json]
 */
import { parseArgs } from 'node:util';
import { DEPTHS, explore, keyOf, SETUPS, type Exploration } from './explore.ts';
import { isKnown, isOf, KNOWN } from './known.ts';
import { MUTATED, mutate, type Mutation } from './mutations.ts';
import { explorePairs } from './pairs.ts';
import { explorePlan } from './plan.ts';
import { tell } from './story.ts';

const { values } = parseArgs({
  options: {
    depth: { type: 'string' },
    states: { type: 'string', default: '2000000' },
    setup: { type: 'string', multiple: true },
    table: { type: 'string', multiple: true },
    mutations: { type: 'boolean', default: false },
    pairs: { type: 'boolean', default: false },
    seed: { type: 'string' },
    seconds: { type: 'string' },
    stories: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});

const setups = SETUPS.filter((setup) => values.setup?.includes(setup) ?? true);
const depth = values.depth === undefined ? undefined : Number(values.depth);
const limits = { states: Number(values.states), setups, ...(depth === undefined ? {} : { depth }) };
const write = (line: string): void => void process.stdout.write(`${line}\n`);

if (values.mutations) await runMutations();
else if (values.pairs) runPairs();
else runExploration();

function runPairs(): void {
  const { seed, seconds } = values;
  let [pairs, states, wrongs] = [0, 0, 0];
  for (const found of explorePairs({
    setups,
    states: limits.states,
    ...(seed === undefined ? {} : { seed: Number(seed) }),
    ...(seconds === undefined ? {} : { seconds: Number(seconds) }),
  })) {
    pairs++;
    states += found.states;
    wrongs += found.wrongs.length;
    if (!found.complete) write(`${found.setup}: ${found.mishaps.join(' x ')}: too many states`);
    for (const wrong of found.wrongs) write(tell(wrong, found.mind));
  }
  write(`${pairs} pairs of mishaps, ${states} states, ${wrongs} wrong`);
  process.exitCode = wrongs === 0 ? 0 : 1;
}

function runExploration(): void {
  const cpu = process.cpuUsage();
  const wrongs: Exploration['wrongs'][number][] = [];
  const kinds: object[] = [];
  let states = 0;
  if (!values.json) write(row('runner', 'mishaps', 'states', 'steps', 'ends', ''));
  for (const setup of setups) {
    const {
      mind,
      wrongs: found,
      ...figures
    } = explore({ ...limits, setups: [setup], depth: depth ?? DEPTHS[setup] });
    states += figures.states;
    wrongs.push(...found);
    kinds.push({ setup, ...figures });
    if (values.json) continue;
    write(
      row(
        setup,
        figures.depth,
        figures.states,
        figures.steps,
        figures.ends,
        figures.complete ? 'complete' : 'as far as the limit of states allows',
      ),
    );
    for (const wrong of found) if (values.stories || !isKnown(wrong)) write(tell(wrong, mind));
  }
  const plan = explorePlan();
  const cpuSeconds = process.cpuUsage(cpu).user / 1e6;
  const unknown = wrongs.filter((wrong) => !isKnown(wrong));
  const whole = values.setup === undefined && depth === undefined;
  const stale = whole ? KNOWN.filter((known) => !wrongs.some((wrong) => isOf(known, wrong))) : [];
  if (values.json) {
    write(
      JSON.stringify(
        {
          states,
          cpuSeconds,
          kinds,
          plan,
          wrongs: wrongs.map((wrong) => ({
            setup: wrong.setup,
            what: wrong.what,
            count: wrong.count,
            steps: wrong.story.length - 1,
            known: isKnown(wrong),
          })),
        },
        undefined,
        1,
      ),
    );
  } else {
    write(row("a set's plan", '', plan.states, plan.steps, '', 'complete'));
    for (const wrong of plan.wrongs) write(`WRONG  ${wrong}`);
    for (const wrong of wrongs)
      write(`${isKnown(wrong) ? 'known' : 'WRONG'}  ${keyOf(wrong)} (in ${wrong.count} states)`);
    for (const { what, setup } of stale)
      write(
        `STALE  ${String(setup)}: ${String(what)}: not found any more, take it out of known.ts`,
      );
    write(`${states + plan.states} states, ${cpuSeconds.toFixed(1)} s of CPU`);
  }
  process.exitCode = unknown.length + stale.length + plan.wrongs.length === 0 ? 0 : 1;
}

function row(...[name, ...cells]: (string | number)[]): string {
  return `${String(name).padEnd(26)}${cells
    .slice(0, -1)
    .map((cell) => String(cell).padStart(9))
    .join('')}  ${cells.at(-1)}`.trimEnd();
}

async function runMutations(): Promise<void> {
  const all: Mutation[] = [];
  for await (const mutation of mutate(
    limits,
    MUTATED.filter((table) => values.table?.includes(table) ?? true),
  )) {
    all.push(mutation);
    const { table, line, condition, change, result, caughtBy } = mutation;
    if (!values.json)
      write(
        `${result.padEnd(6)}  ${table}:${line}  ${change.padEnd(7)}  ${condition.slice(0, 70).padEnd(70)}  ${caughtBy ?? 'NOT CAUGHT'}`,
      );
  }
  const count = (which: (one: Mutation) => boolean, table?: string): number =>
    all.filter((one) => which(one) && (table === undefined || one.table === table)).length;
  const columns = (table?: string): number[] => [
    count(() => true, table),
    count(({ result }) => result === 'caught', table),
    count(({ result }) => result === 'same', table),
    count(({ result }) => result === 'missed', table),
    count(({ result, caughtBy }) => result !== 'caught' && caughtBy !== undefined, table),
    count(({ caughtBy }) => caughtBy === undefined, table),
  ];
  const [figures, ...names] = [
    columns(),
    'mutants',
    'caught',
    'same',
    'missed',
    'caughtByTests',
    'notCaught',
  ] as const;
  if (values.json)
    write(
      JSON.stringify(
        {
          all: Object.fromEntries(names.map((name, index) => [name, figures[index]])),
          tables: Object.fromEntries(
            MUTATED.map((table) => [
              table,
              Object.fromEntries(names.map((name, index) => [name, columns(table)[index]])),
            ]),
          ),
          mutants: all,
        },
        undefined,
        1,
      ),
    );
  else {
    write('');
    write(row('table', 'mutants', 'caught', 'same', 'missed', 'by tests', 'not caught'));
    for (const table of MUTATED) write(row(table, ...columns(table)));
    write(row('all', ...columns()));
  }
  process.exitCode = columns().at(-1) === 0 ? 0 : 1;
}
