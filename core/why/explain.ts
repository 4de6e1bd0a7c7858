/**
 * Explains why a job, a runner or a set waits, or how it ended, from facts that were read before.
 * Pure.
 */
import type {
  SetJobStatus,
  WaitReason,
  WhyAnswer,
  WhyLink,
  WhyVerdict,
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
import { currentRecord, mismatches } from './servingSet.ts';
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
  const causes = set === undefined ? [] : queuedCauses(set, record);
  return { ...base, state: causes.length === 0 ? 'unknown' : 'waiting', causes };
}

/** Explains a job that no set knows. */
function explainUnknownJob(
  facts: JobFacts,
  missing: readonly string[],
): Pick<WhyAnswer, 'state' | 'causes' | 'missing' | 'otherSets'> {
  const { set, servedBy, labels, repository, unanswered } = facts;
  const silent = unanswered.flatMap((one) => setCauses(one));
  if (set !== undefined && servedBy !== undefined)
    return {
      state: 'waiting',
      causes: [...jobCausesOfSet(set, { limited: true }), unreported(set, servedBy.because)],
      missing: [...missing],
    };
  if (silent.length > 0)
    return {
      state: 'unknown',
      causes: uniqueCauses(silent),
      missing: [...missing, `${unanswered.length} sets that may know the job did not answer`],
    };
  const otherSets = mismatches(facts);
  if (labels !== undefined && otherSets.every((set) => set.mismatches.length > 0))
    return {
      state: 'waiting',
      causes: [noSet(otherSets.length, labels, repository)],
      missing: [...missing],
      otherSets,
    };
  const needed = labels === undefined ? '--labels' : 'its URL instead of its ID';
  return {
    state: 'unknown',
    causes: [],
    missing: [...missing, `no set knows the job; give ${needed} to see which set would serve it`],
    otherSets,
  };
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
    text: `no event of the job has reached the set${check}`,
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

function explainRun({ runId, repository, known, sets, unanswered }: RunFacts): WhyAnswer {
  const queued = known.filter(({ job }) => job.state === 'queued' && job.reroutedTo === undefined);
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
      `sets know jobs, not runs: these are all jobs of ${repository} that wait or run`,
      ...(unanswered.length === 0 ? [] : [`${unanswered.length} sets did not answer`]),
      ...missingOf(sets.flatMap(({ starting }) => starting)),
    ],
    links: linksOf(sets),
  };
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
