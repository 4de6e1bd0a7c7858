/** `npm run explore`: every kind of runner, and the plan of a set. */
import { explore, MAX_FAULTS, SETUPS, type Exploration } from './explore.ts';
import { limitsOf, type ExploreFlags } from './exploreFlags.ts';
import { isKnown, KNOWN_VIOLATIONS, matches, type KnownViolation } from './knownViolations.ts';
import { exploreSetPlans, type SetPlanExploration } from './setPlans.ts';
import { row, write } from './table.ts';
import { formatViolation, violationKey, type Violation } from './trace.ts';
import type { Setup } from './state.ts';

type Figures = Omit<Exploration, 'violations' | 'workflow'>;

interface Result {
  /** Figures of each kind of runner. */
  readonly kinds: readonly (Figures & { readonly setup: Setup })[];
  readonly violations: readonly Violation[];
  readonly setPlans: SetPlanExploration;
  readonly states: number;
  readonly cpuSeconds: number;
  /** Known violations that did not occur. */
  readonly stale: readonly KnownViolation[];
}

/** Explores the model, prints figures and violations, and sets the exit status. */
export function reportExploration(flags: ExploreFlags): void {
  if (!flags.json) write(row('runner', 'faults', 'states', 'steps', 'ends', ''));
  const result = exploreAll(flags);
  if (flags.json) writeJson(result);
  else writeSummary(result);
  const { violations, stale, setPlans } = result;
  const isNew = violations.some((violation) => !isKnown(violation));
  process.exitCode = isNew || stale.length > 0 || setPlans.violations.length > 0 ? 1 : 0;
}

function exploreAll(flags: ExploreFlags): Result {
  const startedAt = process.cpuUsage();
  const limits = limitsOf(flags);
  const violations: Violation[] = [];
  const kinds: (Figures & { setup: Setup })[] = [];
  for (const setup of SETUPS.filter((each) => limits.setups?.includes(each) ?? true)) {
    const exploration = explore({
      ...limits,
      setups: [setup],
      depth: limits.depth ?? MAX_FAULTS[setup],
    });
    const { workflow: _workflow, violations: found, ...figures } = exploration;
    violations.push(...found);
    kinds.push({ setup, ...figures });
    if (!flags.json) writeKind(setup, exploration, flags);
  }
  const setPlans = exploreSetPlans();
  const isWhole = flags.setup === undefined && flags.depth === undefined;
  return {
    kinds,
    violations,
    setPlans,
    states: kinds.reduce((sum, { states }) => sum + states, 0),
    cpuSeconds: process.cpuUsage(startedAt).user / 1e6,
    stale: isWhole
      ? KNOWN_VIOLATIONS.filter((known) => !violations.some((one) => matches(known, one)))
      : [],
  };
}

function writeKind(
  setup: Setup,
  { depth, states, steps, ends, complete, violations, workflow }: Exploration,
  { stories }: ExploreFlags,
): void {
  write(row(setup, depth, states, steps, ends, complete ? 'complete' : 'up to --states'));
  for (const violation of violations)
    if (stories || !isKnown(violation)) write(formatViolation(violation, workflow));
}

function writeSummary({ violations, setPlans, stale, states, cpuSeconds }: Result): void {
  write(row("a set's plan", '', setPlans.states, setPlans.steps, '', 'complete'));
  for (const message of setPlans.violations) write(`NEW    ${message}`);
  for (const violation of violations)
    write(
      `${isKnown(violation) ? 'known' : 'NEW  '}  ${violationKey(violation)} (in ${violation.count} states)`,
    );
  for (const { message, setup } of stale)
    write(
      `STALE  ${String(setup)}: ${String(message)}: does not occur, remove it from knownViolations.ts`,
    );
  write(`${states + setPlans.states} states, ${cpuSeconds.toFixed(1)} s of CPU`);
}

/** The names of the JSON fields are an interface for other programs. */
function writeJson({ states, cpuSeconds, kinds, setPlans, violations }: Result): void {
  const { violations: wrongs, ...plan } = setPlans;
  const document = {
    states,
    cpuSeconds,
    kinds,
    plan: { ...plan, wrongs },
    wrongs: violations.map((violation) => ({
      setup: violation.setup,
      what: violation.message,
      count: violation.count,
      steps: violation.trace.length - 1,
      known: isKnown(violation),
    })),
  };
  write(JSON.stringify(document, undefined, 1));
}
