import type { Entry } from './timeline.ts';

/** Violation of an invariant. */
export interface Violation {
  readonly rule: string;
  readonly message: string;
  /** ID of the workflow whose timeline shows the violation. */
  readonly workflowId?: string;
}

type Of<K extends Entry['kind']> = Extract<Entry, { kind: K }>;

/** Stop requests that interrupt a job. All others let it finish. */
const INTERRUPTS: ReadonlySet<string> = new Set(['stop', 'force', 'plain', 'terminated']);

/**
 * Returns the violations that the timeline of a run shows. docs/lifecycle.md has the rules. Pure.
 * @param hasEnded - whether the run has ended, so that a job without an end never gets one
 */
export function violationsOf(entries: readonly Entry[], hasEnded: boolean): Violation[] {
  const of = <K extends Entry['kind']>(kind: K): Of<K>[] =>
    entries.filter((entry): entry is Of<K> => entry.kind === kind);
  const facts: Facts = {
    pods: of('pod'),
    faults: of('fault'),
    disruptions: of('disrupted'),
    stopRequests: of('stopRequested'),
    jobs: of('job'),
    ends: of('end'),
    deletions: of('deletion'),
  };
  return [...deletions(facts), ...onePodEach(facts), ...jobs(facts, hasEnded), ...verdicts(facts)];
}

interface Facts {
  readonly pods: readonly Of<'pod'>[];
  readonly faults: readonly Of<'fault'>[];
  readonly disruptions: readonly Of<'disrupted'>[];
  readonly stopRequests: readonly Of<'stopRequested'>[];
  readonly jobs: readonly Of<'job'>[];
  readonly ends: readonly Of<'end'>[];
  readonly deletions: readonly Of<'deletion'>[];
}

/** Whether a stop request had interrupted the runner by that time. */
const interrupted = (
  { stopRequests }: Facts,
  workflowId: string | undefined,
  by: number,
): boolean =>
  stopRequests.some(
    (entry) => entry.workflowId === workflowId && INTERRUPTS.has(entry.how) && entry.at <= by,
  );

/**
 * Whether a fault had removed the pod, or the pod had ended by itself. The simulator learns of such
 * an end only when the lease of the job expires.
 */
const podWasLost = ({ disruptions, pods }: Facts, pod: string, by: number): boolean =>
  disruptions.some((entry) => entry.pod === pod && entry.at <= by) ||
  pods.some(
    (entry) =>
      entry.pod === pod && (entry.step === 'ended' || entry.step === 'deleted') && entry.at <= by,
  );

/** No pod is deleted while its runner has a job, unless a stop request interrupts the job. */
function deletions(facts: Facts): Violation[] {
  return facts.deletions
    .filter(
      ({ job, workflowId, pod, at }) =>
        job !== undefined && !interrupted(facts, workflowId, at) && !podWasLost(facts, pod, at),
    )
    .map(({ job, workflowId, pod }) =>
      violation(
        'no pod is deleted during its job',
        `a worker requested the deletion of pod ${pod} while its runner had job ${job}`,
        workflowId,
      ),
    );
}

/**
 * No registration has two pods at the same time. It may have two in succession: if a worker dies
 * after it created a pod, and the pod is removed, the next worker does not find it and creates
 * another one.
 */
function onePodEach({ pods }: Facts): Violation[] {
  const hasEndedBy = (pod: string, by: number): boolean =>
    pods.some(
      (entry) =>
        entry.pod === pod && (entry.step === 'ended' || entry.step === 'deleted') && entry.at <= by,
    );
  const created = pods.filter(({ step }) => step === 'created');
  return created.flatMap(({ runner, pod, at, workflowId }, index) =>
    created
      .slice(0, index)
      .filter((earlier) => earlier.runner === runner && !hasEndedBy(earlier.pod, at))
      .map((earlier) =>
        violation(
          'one pod for each registration',
          `runner ${runner} had pod ${earlier.pod} and pod ${pod} at the same time`,
          workflowId,
        ),
      ),
  );
}

/**
 * Every job runs once, on one runner and to its end. Exceptions are a fault that removed its
 * runner, a stop request that interrupted it, and a cancellation by its user.
 */
function jobs(facts: Facts, hasEnded: boolean): Violation[] {
  return [...Map.groupBy(facts.jobs, ({ job }) => job)].flatMap(([job, steps]) => {
    const end = steps.find((step) => step.step === 'completed');
    if (steps.some(({ step }) => step === 'cancelled by its user'))
      return hasEnded && end === undefined
        ? [violation('every job ends', `job ${job} was cancelled, and has not ended`)]
        : [];
    const assigned = steps.filter(({ step }) => step === 'assigned');
    const runners = assigned.map(({ workflowId }) => workflowId);
    const isExcused = (workflowId: string | undefined): boolean =>
      interrupted(facts, workflowId, Infinity) ||
      facts.disruptions.some((entry) => entry.workflowId === workflowId);
    const [last, ...earlier] = runners.toReversed();
    const lost = earlier.filter((workflowId) => !isExcused(workflowId));
    if (lost.length > 0)
      return [
        violation(
          'each job runs on one runner',
          `job ${job} was assigned to ${runners.join(', then to ')}`,
          lost[0],
        ),
      ];
    if (end === undefined)
      return hasEnded
        ? [violation('every job ends', `job ${job} is ${steps.at(-1)?.step}`, last)]
        : [];
    if ('conclusion' in end && end.conclusion !== 'success' && !isExcused(last))
      return [violation('each job runs to its end', `job ${job} ended as ${end.conclusion}`, last)];
    return [];
  });
}

/**
 * A runner is `errored` or `failed` only if a fault affected it directly. It waits until faults of
 * other components end. It is `aborted` only after a stop request.
 */
function verdicts(facts: Facts): Violation[] {
  return facts.ends.flatMap(({ workflowId, status, outcome, cause }) => {
    const verdict = [outcome, cause].filter(Boolean).join('/');
    // A runner does not wait for the end of a policy that denies its pod.
    const isDenied = cause === 'pod_rejected' && facts.faults.some(({ fault }) => fault === 'pods_denied'); // prettier-ignore
    const isAffected =
      isDenied || facts.disruptions.some((entry) => entry.workflowId === workflowId);
    const requests = facts.stopRequests.filter((entry) => entry.workflowId === workflowId);
    const wasRequested = (how: Of<'stopRequested'>['how']): boolean =>
      requests.some((entry) => entry.how === how);
    if (
      status !== 'COMPLETED' &&
      !(status === 'CANCELLED' && wasRequested('plain')) &&
      !(status === 'TERMINATED' && wasRequested('terminated'))
    ) {
      return [violation('every runner completes', `its workflow ended as ${status}`, workflowId)];
    }
    if ((outcome === 'errored' || outcome === 'failed') && !isAffected)
      return [
        violation(
          'a fault of another component does not end a runner',
          `the runner ended as ${verdict}, and no fault had affected it`,
          workflowId,
        ),
      ];
    if (outcome === 'aborted' && requests.length === 0)
      return [
        violation(
          'no runner is aborted without a request',
          `the runner ended as ${verdict}, and no stop was requested`,
          workflowId,
        ),
      ];
    return [];
  });
}

function violation(rule: string, message: string, workflowId?: string): Violation {
  return { rule, message, ...(workflowId === undefined ? {} : { workflowId }) };
}
