/** Converts options to a visibility query (https://docs.temporal.io/list-filter). */
import { RUNNER_OUTCOMES, RUNNER_PHASES } from '../../core/contract/index.ts';
import { quoteLiteral } from '../../core/domain/visibility.ts';
import { OPEN_FILTER } from '../../core/domain/workflowStatus.ts';
import { CliError } from './exit.ts';

/** Filter for runners and jobs that need attention. */
export const FAILED_OR_ERRORED = "RunnerOutcome IN ('errored', 'failed')";

/** Selection of runners. */
export interface Selection {
  readonly set?: string;
  readonly scope?: string;
  readonly phase?: string;
  readonly outcome?: string;
  /** List filter for conditions without an option of their own. */
  readonly query?: string;
  /** Whether ended runners are included. @default false */
  readonly all?: boolean;
}

/**
 * Returns the query for a selection. It includes only running runners, unless `all` or an outcome
 * is given, which only ended ones have.
 * @throws CliError `usage`
 */
export function selectionQuery(selection: Selection): string {
  const terms = ['WorkflowType = "runner"'];
  if (!selection.all && selection.outcome === undefined) terms.push(OPEN_FILTER);
  if (selection.set !== undefined) terms.push(`RunnerSet = ${quoteLiteral(selection.set)}`);
  if (selection.scope !== undefined) terms.push(`RunnerScope = ${quoteLiteral(selection.scope)}`);
  if (selection.phase !== undefined)
    terms.push(`RunnerPhase = ${quoteLiteral(oneOf('--phase', selection.phase, RUNNER_PHASES))}`);
  if (selection.outcome !== undefined)
    terms.push(
      `RunnerOutcome = ${quoteLiteral(oneOf('--outcome', selection.outcome, RUNNER_OUTCOMES))}`,
    );
  if (selection.query !== undefined) {
    if (selection.query.trim() === '')
      throw new CliError(
        'usage',
        '--query: must not be empty; write for example RunnerCause = "evicted"',
      );
    // The parentheses limit an OR of the filter to runners.
    if (!balanced(selection.query))
      throw new CliError('usage', '--query: brackets or quotes are not balanced');
    terms.push(`(${selection.query})`);
  }
  return terms.join(' AND ');
}

function oneOf(flag: string, value: string, allowed: readonly string[]): string {
  const found = allowed.find((each) => each.toLowerCase() === value.toLowerCase());
  if (found === undefined)
    throw new CliError(
      'usage',
      `${flag}: "${value}" is not supported; must be one of ${allowed.join(', ')}`,
    );
  return found;
}

/**
 * Returns whether every closing parenthesis of the filter matches one that it opens. Otherwise it
 * would close that around the filter.
 */
function balanced(query: string): boolean {
  let depth = 0;
  let open: string | undefined;
  for (let i = 0; i < query.length; i++) {
    const character = query.charAt(i);
    if (open !== undefined) {
      if (character === '\\') i++;
      else if (character === open) open = undefined;
    } else if (character === '"' || character === "'" || character === '`') open = character;
    else if (character === '(') depth++;
    else if (character === ')' && --depth < 0) return false;
  }
  return depth === 0 && open === undefined;
}
