/** Formats an answer as text for people. Pure. */
import type {
  ServedBecause,
  SetMismatch,
  WaitReason,
  WhyAnswer,
} from '../../core/contract/index.ts';

/** Maximum number of sets and jobs that the text lists. JSON has all of them. */
const MAX_LISTED = 20;

const BECAUSE: Readonly<Record<ServedBecause, string>> = {
  reported: 'an event or a check of the CI server brought it the job',
  rerouted: 'another set could not serve the job',
  only_match: 'no other set matches',
  fewest_labels: 'of the sets that match, it has the fewest other labels',
  narrowest_scope: 'of the sets that match, it has the narrowest scope',
  runner_group: 'of the sets that match, its runner group comes first',
  shared: 'equal sets share the jobs',
  scale_set: 'GitHub assigns the job to its scale set',
};

/** Returns the lines of the answer. */
export function answerLines(answer: WhyAnswer): string[] {
  const { subject, state, causes, servedBy, verdict, runner, missing, links } = answer;
  const row = (name: string, value: string | undefined): string[] =>
    value === undefined ? [] : [`${`${name}:`.padEnd(18)}${value}`];
  const from = servedBy?.reroutedFrom === undefined ? '' : ` (${servedBy.reroutedFrom})`;
  return [
    `${subject.kind} ${subject.id}: ${state}`,
    ...row('Served by', servedBy && `${servedBy.id} (${servedBy.labels.join(', ')})`),
    ...row('Because', servedBy && `${BECAUSE[servedBy.because]}${from}`),
    ...row('Runner', runner),
    ...causes.flatMap(causeLines),
    ...row('Verdict', verdict && [verdict.outcome, verdict.cause].filter(Boolean).join('/')),
    ...row('Message', verdict?.message),
    ...(verdict?.evidence ?? []).flatMap((fact) => row('Evidence', fact)),
    ...listed(answer.otherSets ?? [], mismatchLine),
    ...listed(answer.jobs ?? [], (job) => `  job ${job.jobId}: ${job.state}, ${job.set}`),
    ...missing.flatMap((text) => row('Not known', text)),
    ...links.flatMap(({ url }) => row('Link', url)),
  ];
}

function causeLines({ cause, text, since, until, fix, runner }: WaitReason): string[] {
  const times = [
    ...(since === undefined ? [] : [`since ${since}`]),
    ...(until === undefined ? [] : [`until ${until}`]),
    ...(runner === undefined ? [] : [`runner ${runner}`]),
  ];
  return [
    `${'Cause:'.padEnd(18)}${cause}: ${text}${times.length === 0 ? '' : ` (${times.join(', ')})`}`,
    ...(fix === undefined ? [] : [`${'Fix:'.padEnd(18)}${fix}`]),
  ];
}

function mismatchLine({ id, labels, mismatches, missingLabels, scope }: SetMismatch): string {
  const lacks = missingLabels.length === 0 ? '' : `, lacks ${missingLabels.join(', ')}`;
  const why = mismatches.length === 0 ? '' : `: ${mismatches.join(', ')}${lacks}`;
  return `  ${id} (${scope}; ${labels.join(', ')})${why}`;
}

function listed<T>(items: readonly T[], line: (item: T) => string): string[] {
  const more = items.length - MAX_LISTED;
  return [
    ...items.slice(0, MAX_LISTED).map(line),
    ...(more > 0 ? [`  ... and ${more} more; see --json`] : []),
  ];
}
