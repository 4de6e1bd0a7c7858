import type { Entry } from './timeline.ts';

/** Something happened that never may. */
export interface Violation {
  readonly rule: string;
  readonly message: string;
  /** Whose timeline tells more. */
  readonly life?: string;
}

type Of<K extends Entry['kind']> = Extract<Entry, { kind: K }>;

/** What interrupts a job on purpose. The other ways to be told to go let it finish. */
const INTERRUPTS: ReadonlySet<string> = new Set(['stop', 'force', 'plain', 'terminated']);

/**
 * What a run's timeline shows to have gone wrong (docs/lifecycle.md says what may happen). Pure.
 * @param over - all has come to its end: what has not ended never will
 */
export function violationsOf(entries: readonly Entry[], over: boolean): Violation[] {
  const of = <K extends Entry['kind']>(kind: K): Of<K>[] =>
    entries.filter((entry): entry is Of<K> => entry.kind === kind);
  const facts: Facts = {
    pods: of('pod'),
    faults: of('fault'),
    taken: of('taken'),
    told: of('told'),
    jobs: of('job'),
    ends: of('end'),
    deletions: of('deletion'),
  };
  return [...deletions(facts), ...onePodEach(facts), ...jobs(facts, over), ...verdicts(facts)];
}

interface Facts {
  readonly pods: readonly Of<'pod'>[];
  readonly faults: readonly Of<'fault'>[];
  readonly taken: readonly Of<'taken'>[];
  readonly told: readonly Of<'told'>[];
  readonly jobs: readonly Of<'job'>[];
  readonly ends: readonly Of<'end'>[];
  readonly deletions: readonly Of<'deletion'>[];
}

const interrupted = ({ told }: Facts, life: string | undefined, by: number): boolean =>
  told.some((entry) => entry.life === life && INTERRUPTS.has(entry.how) && entry.at <= by);

/** Its pod had been taken from it, or had ended by itself, which the simulator does not know before the job's lease is out. */
const podWasLost = ({ taken, pods }: Facts, pod: string, by: number): boolean =>
  taken.some((entry) => entry.pod === pod && entry.at <= by) ||
  pods.some(
    (entry) =>
      entry.pod === pod && (entry.step === 'ended' || entry.step === 'gone') && entry.at <= by,
  );

/** No pod is asked to go while its runner has a job, unless somebody wants the job to end. */
function deletions(facts: Facts): Violation[] {
  return facts.deletions
    .filter(
      ({ job, life, pod, at }) =>
        job !== undefined && !interrupted(facts, life, at) && !podWasLost(facts, pod, at),
    )
    .map(({ job, life, pod }) =>
      violation(
        'no pod goes under its job',
        `pod ${pod} was asked to go while its runner had job ${job}`,
        life,
      ),
    );
}

/**
 * No registration has two pods at a time. One after another it may: a pod that was taken before the worker that made it could tell, and died, is
 * made again by the next, which cannot know of it.
 */
function onePodEach({ pods }: Facts): Violation[] {
  const over = (pod: string, by: number): boolean =>
    pods.some(
      (entry) =>
        entry.pod === pod && (entry.step === 'ended' || entry.step === 'gone') && entry.at <= by,
    );
  const created = pods.filter(({ step }) => step === 'created');
  return created.flatMap(({ runner, pod, at, life }, index) =>
    created
      .slice(0, index)
      .filter((earlier) => earlier.runner === runner && !over(earlier.pod, at))
      .map((earlier) =>
        violation(
          'one pod for each registration',
          `runner ${runner} had pod ${earlier.pod}, and pod ${pod} beside it`,
          life,
        ),
      ),
  );
}

/** Every job runs once, on one runner and to its end, unless its runner was taken from it or told to go at once, or its user cancelled it. */
function jobs(facts: Facts, over: boolean): Violation[] {
  return [...Map.groupBy(facts.jobs, ({ job }) => job)].flatMap(([job, steps]) => {
    const end = steps.find((step) => step.step === 'completed');
    if (steps.some(({ step }) => step === 'cancelled by its user'))
      return over && end === undefined
        ? [violation('every job ends', `job ${job} was cancelled, and has not ended`)]
        : [];
    const assigned = steps.filter(({ step }) => step === 'assigned');
    const lives = assigned.map(({ life }) => life);
    const excused = (life: string | undefined): boolean =>
      interrupted(facts, life, Infinity) || facts.taken.some((entry) => entry.life === life);
    const [last, ...earlier] = lives.toReversed();
    const lost = earlier.filter((life) => !excused(life));
    if (lost.length > 0)
      return [
        violation(
          'each job runs on one runner',
          `job ${job} was given to ${lives.join(', then to ')}`,
          lost[0],
        ),
      ];
    if (end === undefined)
      return over ? [violation('every job ends', `job ${job} is ${steps.at(-1)?.step}`, last)] : [];
    if ('conclusion' in end && end.conclusion !== 'success' && !excused(last))
      return [violation('each job runs to its end', `job ${job} ended as ${end.conclusion}`, last)];
    return [];
  });
}

/** A verdict of trouble needs some trouble of the runner's own: what goes wrong around it is waited out. */
function verdicts(facts: Facts): Violation[] {
  return facts.ends.flatMap(({ life, status, outcome, cause }) => {
    const what = [outcome, cause].filter(Boolean).join('/');
    // No wait helps against a rule that denies the pod.
    const isDenied = cause === 'pod_rejected' && facts.faults.some(({ fault }) => fault === 'pods_denied'); // prettier-ignore
    const touched = isDenied || facts.taken.some((entry) => entry.life === life);
    const told = facts.told.some((entry) => entry.life === life);
    const wasTold = (how: Of<'told'>['how']): boolean =>
      facts.told.some((entry) => entry.life === life && entry.how === how);
    if (
      status !== 'COMPLETED' &&
      !(status === 'CANCELLED' && wasTold('plain')) &&
      !(status === 'TERMINATED' && wasTold('terminated'))
    ) {
      return [violation('every life ends by itself', `its workflow ended as ${status}`, life)];
    }
    if ((outcome === 'errored' || outcome === 'failed') && !touched)
      return [
        violation(
          'what goes wrong around a runner is waited out',
          `it ended as ${what}, and nothing had touched it`,
          life,
        ),
      ];
    if (outcome === 'aborted' && !told)
      return [
        violation(
          'nobody is aborted unasked',
          `it ended as ${what}, and nobody had told it to go`,
          life,
        ),
      ];
    return [];
  });
}

function violation(rule: string, message: string, life?: string): Violation {
  return { rule, message, ...(life === undefined ? {} : { life }) };
}
