/**
 * Explains why a job, a runner or a set waits, or how it ended, from facts that were read before.
 * Pure.
 */
import {
  MAX_SET_JOBS,
  type SetJobStatus,
  type WaitReason,
  type WhyAnswer,
  type WhyLink,
  type WhyVerdict,
} from '../contract/index.ts';
import { omitUndefined } from '../domain/omitUndefined.ts';
import type {
  JobFacts,
  KnownJob,
  RunFacts,
  RunnerEndFacts,
  RunnerFacts,
  SetFacts,
  WhyFacts,
  WorkflowFacts,
} from './facts.ts';
import { runnerCauses } from './runnerCauses.ts';
import { currentRecord, matchingKinds, mismatches } from './servingSet.ts';
import { jobCausesOfSet, setCauses } from './setCauses.ts';

/** Returns the answer that follows from the facts. */
export function explain(facts: WhyFacts): WhyAnswer {
  switch (facts.kind) {
    case 'runner':
      return explainRunner(facts);
    case 'set':
      return explainSet(facts);
    case 'job':
      return explainJob(facts);
    case 'run':
      return explainRun(facts);
  }
}

function explainRunner(facts: RunnerFacts): WhyAnswer {
  const { id, end, status } = facts;
  const base = {
    subject: { kind: 'runner' as const, id },
    missing: missingOf([facts]),
    links: linksOf([facts]),
  };
  if (end !== undefined) return { ...base, state: 'ended', causes: [], verdict: verdictOf(end) };
  const causes = runnerCauses(facts);
  const isStuck = causes.some(({ cause }) => cause !== 'idle' && cause !== 'job_running');
  if (isStuck) return { ...base, state: 'waiting', causes };
  return { ...base, state: status?.phase === 'Idle' ? 'ready' : 'running', causes };
}

function explainSet(facts: SetFacts): WhyAnswer {
  const { id, end } = facts;
  const base = {
    subject: { kind: 'set' as const, id },
    missing: missingOf(facts.starting),
    links: linksOf([facts, ...facts.starting]),
  };
  if (end !== undefined)
    return { ...base, state: 'ended', causes: [], verdict: { ...end, evidence: [] } };
  const causes = setCauses(facts);
  return { ...base, state: causes.length === 0 ? 'ready' : 'waiting', causes };
}

function explainJob(facts: JobFacts): WhyAnswer {
  const { jobId, servedBy, set, runner } = facts;
  const record = currentRecord(facts.known)?.job;
  const workflows = [set, ...(set?.starting ?? []), runner].filter((each) => each !== undefined);
  const base = {
    subject: { kind: 'job' as const, id: jobId },
    causes: [],
    ...omitUndefined({ servedBy }),
    missing: missingOf([...(set?.starting ?? []), ...(runner === undefined ? [] : [runner])]),
    links: linksOf(workflows),
  };
  if (record === undefined) return { ...base, ...explainUnknownJob(facts, base.missing) };
  if (record.state === 'assigned') return { ...base, ...explainAssigned(record, runner) };
  if (record.state !== 'queued') return { ...base, state: 'ended', verdict: verdictOfJob(record) };
  if (set?.end !== undefined) return { ...base, ...explainEndedSet(set.end, base.missing) };
  const causes = set === undefined ? [] : queuedCauses(set, record);
  return { ...base, state: causes.length === 0 ? 'unknown' : 'waiting', causes };
}

/** Explains a job that was queued when its set ended. */
const explainEndedSet = (
  end: NonNullable<SetFacts['end']>,
  missing: readonly string[],
): Pick<WhyAnswer, 'state' | 'verdict' | 'missing'> => ({
  state: 'unknown',
  verdict: { ...end, evidence: [] },
  missing: [...missing, 'the set of the job has ended, and does not know what became of the job'],
});

/** Explains a job that no set knows. */
function explainUnknownJob(
  facts: JobFacts,
  missing: readonly string[],
): Pick<WhyAnswer, 'state' | 'causes' | 'missing' | 'otherSets'> {
  const { set, servedBy, labels, repository, unanswered, silentSets } = facts;
  const causes = set === undefined ? [] : jobCausesOfSet(set, { limited: false });
  if (silentSets > 0)
    return {
      state: 'unknown',
      causes: uniqueCauses([...causes, ...unanswered.flatMap((one) => setCauses(one))]),
      missing: [...missing, `${silentSets} sets that may know the job did not answer`],
    };
  if (set !== undefined && servedBy !== undefined)
    return {
      state: 'unknown',
      causes: [...causes, unreported(set, servedBy.because)],
      missing: [...missing],
    };
  const otherSets = mismatches(facts);
  if (labels !== undefined && otherSets.every((one) => one.mismatches.length > 0))
    return {
      state: 'waiting',
      causes: [noSet(otherSets.length, labels.given, repository)],
      missing: [...missing],
      otherSets,
    };
  return { state: 'unknown', causes: [], missing: [...missing, unclear(facts)], otherSets };
}

/** Returns why it is not clear which set would serve a job that no set knows. */
function unclear(facts: JobFacts): string {
  const kinds = matchingKinds(facts);
  if (facts.labels === undefined)
    return 'no set knows the job; give --labels to see which set would serve it';
  return kinds.length > 1
    ? `no set knows the job, and sets of several CI servers match it: ${kinds.join(', ')}`
    : 'no set knows the job; give its URL instead of its ID to see which set would serve it';
}

function noSet(sets: number, labels: readonly string[], repository = 'any repository'): WaitReason {
  return {
    cause: 'no_set',
    text: `none of ${sets} sets serves a job of ${repository} with the labels ${labels.join(', ') || '(none)'}`,
    fix: "add the missing labels to a set's template.labels, or change runs-on of the job",
  };
}

/** Returns that the set that would serve the job does not know it. */
function unreported({ status }: SetFacts, because: string): WaitReason {
  if (because === 'scale_set')
    return {
      cause: 'not_reported',
      text: `GitHub has assigned ${status?.scaleSet?.assigned ?? 0} jobs to the scale set, and does not say which`,
    };
  const { incompleteSince, reason } = status?.queueCheck ?? {};
  const check =
    reason === undefined ? '' : `, and its checks of the CI server miss jobs (${reason})`;
  return {
    cause: 'not_reported',
    text: `no event of the job has reached the set${check}; or the job ended more than six hours ago`,
    fix: 'check the deliveries of the webhook; the next check of the CI server finds the job if it is queued',
    ...omitUndefined({ since: incompleteSince }),
  };
}

/** Returns why a queued job has no runner of its set yet. */
function queuedCauses(set: SetFacts, { since, limited }: SetJobStatus): WaitReason[] {
  const causes = jobCausesOfSet(set, { limited: limited === true });
  if (causes.length > 0) return causes;
  const { idle = 0, starting = 0 } = set.status?.runnerCounts ?? {};
  if (idle > 0)
    return [
      {
        cause: 'not_assigned',
        text: `${idle} runners of the set are idle, and the CI server has not assigned the job to one`,
        fix: "check that the repository may use the set's runner group",
        since,
      },
    ];
  const text = starting > 0 ? `${starting} runners of the set are starting` : 'the set starts one';
  return [{ cause: 'starting', text, since }];
}

function explainAssigned(
  { runnerName, since }: SetJobStatus,
  runner: RunnerFacts | undefined,
): Pick<WhyAnswer, 'state' | 'causes' | 'verdict' | 'runner'> {
  if (runner?.end !== undefined)
    return {
      state: 'ended',
      causes: [],
      runner: runner.id,
      verdict: verdictOf(runner.end),
    };
  const text = `it runs on ${runnerName ?? 'a runner whose name is unknown'}`;
  return {
    state: 'running',
    causes: [{ cause: 'job_running', text, since }],
    ...omitUndefined({ runner: runner?.id }),
  };
}

function explainRun(facts: RunFacts): WhyAnswer {
  const { runId, known, sets, unanswered } = facts;
  const ended = sets.filter(({ end }) => end !== undefined).map(({ id }) => id);
  const queued = known.filter(
    ({ job, set }) =>
      job.state === 'queued' && job.reroutedTo === undefined && !ended.includes(set),
  );
  const causes = sets.flatMap((set) => {
    const [first] = queued.filter((each) => each.set === set.id);
    return first === undefined ? [] : queuedCauses(set, first.job);
  });
  const silent = unanswered.flatMap((one) => setCauses(one));
  return {
    subject: { kind: 'run', id: runId },
    state: stateOfRun(known, queued),
    causes: uniqueCauses([...causes, ...silent]),
    jobs: known.map(({ set, job }) => ({ ...job, set })),
    missing: [
      ...missingOfRun(facts),
      ...ended.map((id) => `${id} has ended, and does not know what became of its queued jobs`),
      ...missingOf(sets.flatMap(({ starting }) => starting)),
    ],
    links: linksOf(sets),
  };
}

/** Returns which jobs and sets the answer about a run lacks. */
function missingOfRun({ known, silentSets, unreadSets }: RunFacts): string[] {
  const ids = [...new Set(known.map(({ set }) => set))];
  const cut = ids.filter((id) => known.filter(({ set }) => set === id).length >= MAX_SET_JOBS);
  return [
    'completed jobs, and jobs that no set serves, are not listed',
    ...cut.map((id) => `${id} lists ${MAX_SET_JOBS} jobs at most, and may have more`),
    ...(unreadSets === 0 ? [] : [`${unreadSets} more sets with queued jobs were not read`]),
    ...(silentSets === 0 ? [] : [`${silentSets} sets did not answer`]),
  ];
}

function stateOfRun(known: readonly KnownJob[], queued: readonly KnownJob[]): WhyAnswer['state'] {
  if (queued.length > 0) return 'waiting';
  return known.some(({ job }) => job.state === 'assigned') ? 'running' : 'unknown';
}

function uniqueCauses(causes: readonly WaitReason[]): WaitReason[] {
  return [...new Map(causes.map((each) => [`${each.cause} ${each.text}`, each])).values()];
}

function verdictOfJob({ state, since }: SetJobStatus): WhyVerdict {
  return state === 'completed'
    ? { outcome: 'completed', message: 'the job has completed', evidence: [`ended ${since}`] }
    : {
        outcome: 'left',
        message: 'the job does not wait any more: it was cancelled, or runs elsewhere',
        evidence: ['a check of the CI server did not list it as queued'],
      };
}

/** Returns the verdict with the facts that it is based on. */
function verdictOf(end: RunnerEndFacts): WhyVerdict {
  const { outcome, cause, message, exitCode, phases = [], replacements = [] } = end;
  const evidence = [
    ...(exitCode === undefined ? [] : [`exit code ${exitCode}`]),
    ...phases.map(({ phase, at }) => `${phase} since ${at}`),
    ...replacements.map(
      (lost) => `${lost.runnerName} was lost (${lost.cause}) and replaced by ${lost.replacedBy}`,
    ),
    ...(end.rerunWorkflowId === undefined ? [] : [`its job runs again: ${end.rerunWorkflowId}`]),
    ...(end.deregistrationWorkflowId === undefined
      ? []
      : [`its registration is removed by ${end.deregistrationWorkflowId}`]),
    ...(end.terminatedBy === undefined ? [] : [`terminated by ${end.terminatedBy}`]),
    ...(end.sweep === undefined ? [] : [end.sweep]),
  ];
  return { outcome, ...omitUndefined({ cause }), message, evidence };
}

const missingOf = (runners: readonly RunnerFacts[]): string[] =>
  runners.flatMap(({ id, podUnread }) =>
    podUnread === undefined ? [] : [`the pod of ${id} was not read: ${podUnread}`],
  );

const linksOf = (workflows: readonly WorkflowFacts[]): WhyLink[] =>
  workflows.flatMap(({ id, url }) => (url === undefined ? [] : [{ id, url }]));
