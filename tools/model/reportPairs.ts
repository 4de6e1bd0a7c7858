/** `npm run explore -- --pairs`: traces with two faults. */
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { limitsOf, type ExploreFlags } from './exploreFlags.ts';
import { explorePairs } from './faultPairs.ts';
import { formatViolation } from './trace.ts';
import { write } from './table.ts';

const PROGRESS_INTERVAL_MS = 5_000;

/**
 * Explores the combinations of a pair of faults and a kind of runner, and prints new violations.
 * Progress on stderr names the combination with which a stopped run can continue (`--from`).
 */
export function reportPairs(flags: ExploreFlags): void {
  const { seed, seconds, from } = flags;
  const { setups, states: maxStates } = limitsOf(flags);
  let [pairs, states, violations] = [0, 0, 0];
  let nextReportAt = performance.now() + PROGRESS_INTERVAL_MS;
  for (const found of explorePairs({
    ...omitUndefined({ setups, seed, seconds, from, states: maxStates }),
  })) {
    pairs++;
    states += found.states;
    violations += found.violations.length;
    if (!found.complete) write(`${found.setup}: ${found.faults.join(' x ')}: too many states`);
    for (const violation of found.violations) write(formatViolation(violation, found.workflow));
    if (performance.now() >= nextReportAt) {
      nextReportAt = performance.now() + PROGRESS_INTERVAL_MS;
      reportProgress(found, flags);
    }
  }
  write(`${pairs} pairs of faults, ${states} states, ${violations} violations`);
  process.exitCode = violations === 0 ? 0 : 1;
}

function reportProgress(
  { index, total }: { readonly index: number; readonly total: number },
  { seed, setup = [] }: ExploreFlags,
): void {
  const options = [
    ...(seed === undefined ? [] : [`--seed ${seed}`]),
    ...setup.map((name) => `--setup "${name}"`),
    `--from ${index + 1}`,
  ];
  process.stderr.write(
    `${index + 1} of ${total} combinations; to continue from here: --pairs ${options.join(' ')}\n`,
  );
}
