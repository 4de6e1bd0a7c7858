/** What is reported of the newest version, and of those before it, and in which words. Pure. */
import type { JobResult, ReportedState, StepStatus } from '../../core/contract/index.ts';
import { defined } from '../../core/domain/omitUndefined.ts';
import type { CommitReport } from '../../core/domain/commitReport.ts';
import type { GroupState } from './groupState.ts';

/** How a run has ended. */
export type RunEnd = Pick<JobResult, 'outcome' | 'cause' | 'message' | 'steps'>;

export type ReportWords = Pick<CommitReport, 'description' | 'details' | 'cause'>;

/** What comes before what the run says itself. */
const WORDS: Readonly<Record<ReportedState, string>> = {
  queued: 'Queued.',
  running: 'Running.',
  succeeded: 'Succeeded.',
  failed: 'Failed.',
  errored: 'Infrastructure: somebody should look.',
  aborted: 'Aborted.',
};

/** Of the newest version alone: an older one, which may still run, has no say any more. */
export function reportedState({
  generation,
  commit,
  running,
  waits,
  outcome,
}: GroupState): ReportedState | undefined {
  if (commit === undefined) return undefined;
  if (waits) return 'queued';
  return outcome ?? (running?.generation === generation ? 'running' : undefined);
}

/** @param end - of a run that is over */
export function reportWords(state: ReportedState, end: RunEnd | undefined): ReportWords {
  if (state === 'queued' || state === 'running' || end === undefined)
    return { description: WORDS[state], details: [] };
  return {
    description: state === 'succeeded' ? WORDS[state] : `${WORDS[state]} ${end.message}`,
    details: end.steps.map(stepLine),
    ...defined({ cause: end.cause }),
  };
}

/** Of an older version, whose commit is not told of its run's end. @param newest - the commit that has taken its place */
export function supersededWords(newest: string): ReportWords {
  return { description: `Superseded by ${newest}.`, details: [], cause: 'superseded' };
}

function stepLine({ stage, name, state, outcome, cause, message }: StepStatus): string {
  const line = `${stage} ${name}: ${[outcome ?? state, cause].filter(Boolean).join('/')}`;
  return outcome === 'succeeded' || message === undefined ? line : `${line}: ${message}`;
}
