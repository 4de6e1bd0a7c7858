import { comparableText } from '../../core/domain/knownRunner.ts';
import type { ListedRunner, Timestamped } from '../../core/activities/index.ts';
import { temporalActivities } from '../shared/activityProxies.ts';
import type { SetState } from './state.ts';

/** Maximum number of runners whose end one activity checks: about 150 KiB. */
const MAX_DOUBTFUL = 2_000;

/** List of the runners, with those of the doubtful ones that have ended. */
export interface VerifiedList extends Timestamped {
  readonly runners: readonly ListedRunner[];
  readonly ended: readonly string[];
}

/**
 * Lists the runners and verifies the doubtful ones.
 * @param known - workflow IDs of the runners that existed when the list was requested
 */
export async function listAndVerify(
  state: SetState,
  known: ReadonlySet<string>,
): Promise<VerifiedList> {
  const { at, runners } = await listParts(state);
  const listed = new Set(runners.map(({ workflowId }) => workflowId));
  const doubtful = state
    .unverified(runners, at)
    .filter((workflowId) => known.has(workflowId) || listed.has(workflowId));
  const verified = { at, runners, ended: [] as string[] };
  for (let from = 0; from < doubtful.length; from += MAX_DOUBTFUL) {
    const workflowIds = doubtful.slice(from, from + MAX_DOUBTFUL);
    const found = await temporalActivities(
      `Check whether ${workflowIds.length} runners have ended`,
    ).findEndedRunners({ workflowIds });
    verified.at = found.at;
    verified.ended.push(...found.ended);
  }
  return verified;
}

/**
 * Lists the runners. Those that are as the set knows them are not transferred, because a list of
 * all may exceed what a workflow can receive.
 *
 * @returns the time of the first part, because runners started since need not be in the list
 */
async function listParts(state: SetState): Promise<Timestamped & { runners: ListedRunner[] }> {
  const set = state.facts.spec.name;
  const asKnown = state.runners.asListed();
  const known = state.runners.all().map((runner) => comparableText(set, runner));
  const part = await temporalActivities('List the runners').listRunners({ set, known });
  const changed = [...part.runners];
  let { unconfirmed } = part;
  for (let page = part.next; page !== undefined;) {
    const more = await temporalActivities('List more runners').listRunners({ set, known, page });
    changed.push(...more.runners);
    const still = new Set(more.unconfirmed);
    unconfirmed = unconfirmed.filter((index) => still.has(index));
    page = more.next;
  }
  const doubted = new Set(unconfirmed);
  const confirmed = asKnown.filter((_runner, index) => !doubted.has(index));
  return { at: part.at, runners: [...confirmed, ...changed] };
}
