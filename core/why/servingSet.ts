/** Which set serves a job and why, or why none does. Pure. */
import {
  parseSetWorkflowId,
  type ServedBecause,
  type ServingSet,
  type SetMismatch,
} from '../contract/index.ts';
import { CI_SERVER_KINDS, type CiServerKind } from '../domain/ciServerKind.ts';
import { JobRouter, type RoutableSet, type RoutedJob } from '../domain/jobRouting.ts';
import { labelsMatch } from '../domain/labels.ts';
import { scopeHolds } from '../domain/ciServer.ts';
import { omitUndefined } from '../domain/omitUndefined.ts';
import { runnerWorkflowIdFromName } from '../domain/setRunnerNames.ts';
import type { JobQuestion, KnownJob } from './facts.ts';

/** Latest state first. A job that left the queue of one set may be queued in another. */
const STATE_ORDER = ['completed', 'assigned', 'queued', 'left'] as const;

/**
 * Returns the record of the job that is true now: that of the latest attempt and state, of a set to
 * which the job was not rerouted away. A set also has the events of jobs that its runners took from
 * others, so the set of the runner comes first.
 */
export function currentRecord(known: readonly KnownJob[]): KnownJob | undefined {
  const rank = ({ job, set }: KnownJob): number[] => [
    -job.runAttempt,
    job.reroutedTo === undefined ? 0 : 1,
    STATE_ORDER.indexOf(job.state),
    isOwnRunner(set, job.runnerName) ? 0 : 1,
  ];
  return known.toSorted((a, b) => compareRanks(rank(a), rank(b)))[0];
}

/**
 * Returns the records of a job of the repository, if it is known. IDs of jobs are unique at one CI
 * server only. Completed jobs have no repository.
 */
export function recordsIn(
  known: readonly KnownJob[],
  repository: string | undefined,
): readonly KnownJob[] {
  const wanted = repository?.toLowerCase();
  return known.filter(
    ({ job }) =>
      wanted === undefined ||
      job.repository === undefined ||
      job.repository.toLowerCase() === wanted,
  );
}

const isOwnRunner = (set: string, runnerName = ''): boolean =>
  runnerWorkflowIdFromName(parseSetWorkflowId(set), runnerName) !== undefined;

function compareRanks(a: readonly number[], b: readonly number[]): number {
  return a.map((rank, index) => rank - (b[index] ?? 0)).find((difference) => difference !== 0) ?? 0;
}

/** Returns the set that serves the job, or `undefined` if none is known to. */
export function servingSet(question: JobQuestion): ServingSet | undefined {
  const record = currentRecord(question.known);
  if (record === undefined) return routedSet(question);
  const id = record.job.reroutedTo ?? record.set;
  const labels = question.sets.find(({ workflowId }) => workflowId === id)?.routing.labels ?? [];
  if (record.job.reroutedHere === true || record.job.reroutedTo !== undefined) {
    const from = question.known.find(({ job }) => job.reroutedTo === id)?.set;
    return { id, labels, because: 'rerouted', ...omitUndefined({ reroutedFrom: from }) };
  }
  const routed = routedSet(question);
  return routed?.id === id ? routed : { id, labels, because: 'reported' };
}

/**
 * Returns the set that the job's labels and repository lead to, or `undefined` if sets of several
 * kinds of CI servers match. Without the repository, it is the set that alone has the labels.
 */
function routedSet(question: JobQuestion): ServingSet | undefined {
  const { repository, labels } = question;
  if (labels === undefined) return undefined;
  const matching = matchingSets(question);
  const candidates =
    repository === undefined
      ? matching
      : CI_SERVER_KINDS.flatMap((kind) => setOfKind({ ...question, repository, labels }, kind));
  const [chosen] = only(candidates);
  if (chosen === undefined) return undefined;
  const others = matching.filter((set) => set !== chosen);
  return served(chosen, isScaleSet(chosen) ? 'scale_set' : because(chosen, others));
}

const matchingSets = (question: JobQuestion): RoutableSet[] =>
  question.sets.filter((set) => mismatch(question, set).mismatches.length === 0);

/** Returns the kinds of CI servers that have sets with the labels and scope of the job. */
export const matchingKinds = (question: JobQuestion): CiServerKind[] => [
  ...new Set(matchingSets(question).map(kindOf)),
];

const served = ({ workflowId: id, routing }: RoutableSet, reason: ServedBecause): ServingSet => ({
  id,
  labels: routing.labels,
  because: reason,
});

/** Returns the element of a list of one, and nothing of any other list. */
const only = <T>(list: readonly T[]): readonly T[] => (list.length === 1 ? list : []);

/** Returns the set for the job at a CI server of this kind. The list is empty if there is none. */
function setOfKind(
  question: JobQuestion & Required<Pick<JobQuestion, 'repository' | 'labels'>>,
  ciServer: CiServerKind,
): RoutableSet[] {
  const { jobId, repository, labels, sets, known } = question;
  const job: RoutedJob = {
    jobId,
    runAttempt: currentRecord(known)?.job.runAttempt ?? 1,
    repository,
    labels: [...labels.normalized[ciServer]],
  };
  // A job does not say to which enterprise its repository belongs.
  const enterprise = sets.find(({ routing }) => routing.scopeKind === 'enterprise')?.routing.scope;
  const set =
    new JobRouter(sets).setFor(job, { ciServer, ...omitUndefined({ enterprise }) }) ??
    matchingSets(question).find((each) => isScaleSet(each) && kindOf(each) === ciServer);
  return set === undefined ? [] : [set];
}

/** GitHub assigns the jobs of a scale set, so its routing has no CI server. */
const isScaleSet = ({ routing }: RoutableSet): boolean =>
  routing.ciServer === undefined && routing.scope !== '';

/** Returns the kind of CI server that compares the labels of the set. Scale sets are GitHub's. */
const kindOf = ({ routing }: RoutableSet): CiServerKind => routing.ciServer ?? 'github';

function because({ routing }: RoutableSet, others: readonly RoutableSet[]): ServedBecause {
  if (others.length === 0) return 'only_match';
  const equalLabels = others.filter((one) => one.routing.labels.length <= routing.labels.length);
  if (equalLabels.length === 0) return 'fewest_labels';
  const equalScope = equalLabels.filter((one) => one.routing.scopeKind === routing.scopeKind);
  if (equalScope.length === 0) return 'narrowest_scope';
  const group = JSON.stringify(routing.group);
  return equalScope.some((one) => JSON.stringify(one.routing.group) === group)
    ? 'shared'
    : 'runner_group';
}

/** Returns why each set does not serve the job. Without labels or repository it compares the rest. */
export function mismatches(question: JobQuestion): SetMismatch[] {
  const unknown = question.unknownSets.map((id) => ({
    id,
    labels: [],
    mismatches: ['unknown' as const],
    missingLabels: [],
    scope: '',
  }));
  return [
    ...question.sets
      .filter(({ routing }) => routing.scope !== '')
      .map((set) => mismatch(question, set)),
    ...unknown,
  ];
}

function mismatch(
  { repository, labels: wanted }: Pick<JobQuestion, 'repository' | 'labels'>,
  set: RoutableSet,
): SetMismatch {
  const { workflowId, routing } = set;
  const labels = wanted?.normalized[kindOf(set)];
  const own = new Set(routing.labels);
  const missing = labels?.filter((label) => !own.has(label)) ?? [];
  const holds =
    repository === undefined ||
    scopeHolds({ kind: routing.scopeKind, name: routing.scope }, repository);
  const matches = labels === undefined || labelsMatch(own, labels);
  return {
    id: workflowId,
    labels: routing.labels,
    mismatches: [
      ...(matches ? [] : (['labels'] as const)),
      ...(labels?.length === 0 && routing.groupJobs !== true ? (['no_labels'] as const) : []),
      ...(holds ? [] : (['repository'] as const)),
      ...(routing.draining === true ? (['deleting'] as const) : []),
    ],
    missingLabels: missing,
    scope: routing.scope,
  };
}
