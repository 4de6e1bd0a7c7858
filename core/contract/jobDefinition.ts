/** Public names of declared jobs: the workflow type, its signals, its queries and its status. */
import { defineQuery, defineSignal } from '@temporalio/workflow';
import type { JobDefinitionInput } from './jobDefinitionInput.ts';
import type { JobSource } from './jobInput.ts';
import type { RunnerOutcome } from './runner.ts';

export const JOB_DEFINITION_WORKFLOW = 'jobDefinition';

const PREFIX = 'job-definition:';

/** Workflow id of a declared job: one for each name in a repository. */
export const jobDefinitionId = (repository: string, name: string): string =>
  `${PREFIX}${repository.toLowerCase()}:${name}`;

/** What the id of a declared job's workflow says; `undefined`: it is none. */
export function readJobDefinitionId(
  workflowId: string,
): { repository: string; name: string } | undefined {
  const [, repository, name] = /^job-definition:([^:]+\/[^:]+):([^:]+)$/.exec(workflowId) ?? [];
  return repository === undefined || name === undefined ? undefined : { repository, name };
}

/** A push, or another version of a pull request, as the CI server's webhook tells it. */
export interface RepositoryChange {
  event: Exclude<JobSource['event'], 'schedule'>;
  /** The commit pushed, or the head of the pull request: its whole id. */
  commit: string;
  /** In full: `refs/heads/main`, `refs/tags/v1`, `refs/pull/7/merge`. */
  ref: string;
  /** The branch pushed to, or the one that the pull request is to be merged into; absent: a tag. */
  branch?: string;
  /** Its number. */
  pullRequest?: number;
  /** The pull request is from the repository itself, and by somebody who belongs to it. Without this word it is an outsider's. A push needs none: who pushes may write. */
  trusted?: boolean;
  /** The files it changes; absent: they are not known. */
  paths?: string[];
  /** When it came to be so, by the CI server's clock (ISO 8601). */
  at: string;
}

/** One change set of a declared job, and its newest version. */
export interface JobTurnStatus {
  /** Workflow id of its `jobGroup`. */
  group: string;
  /** The commit; of a schedule the time. */
  version: string;
  /** Since when it runs, or waits; ISO 8601. */
  since: string;
  /** An outsider's. */
  untrusted?: true;
}

/** A run that is over. */
export interface EndedTurn extends JobTurnStatus {
  /** When, ISO 8601. */
  endedAt: string;
  /** Absent: it is not known; its group was terminated, say. */
  outcome?: RunnerOutcome;
}

/** What was asked for and not done, and why. */
export interface LeftOut {
  what: string;
  why: string;
  /** ISO 8601. */
  at: string;
}

export interface JobDefinitionStatus {
  name: string;
  repository: string;
  /** Counts the declarations that came to hold. 0: none has yet. */
  generation: number;
  /** A declaration is being looked at. */
  checking: boolean;
  /** What is wrong with the last one that came, if it was refused; the one before goes on. */
  refused?: LeftOut;
  /** Why nothing is begun, or `''`. Absent: it is not paused. */
  paused?: string;
  /** It was told to end, and ends when its runs have; why, or `''`. */
  ending?: string;
  /** Change sets under way at the most; absent: any number. */
  maxConcurrency?: number;
  /** Under way. */
  running: JobTurnStatus[];
  /** They wait for their turn, in this order. */
  waiting: JobTurnStatus[];
  /** When the schedule's next run is due; ISO 8601. */
  nextScheduledAt?: string;
  /** The last ones, newest first. */
  ended: EndedTurn[];
  /** The last changes that started nothing, newest first. */
  leftOut: LeftOut[];
}

/** What the runs of a change set tell the declared job that they are of. */
export interface TurnEndedNews {
  group: string;
  /** Of the last version that it was handed: a later one may be on its way. */
  number: number;
  outcome?: RunnerOutcome;
}

/** What the job is from now on, as a whole: send it with start. One that is invalid is refused, and the one before goes on. */
export const applyDefinitionSignal = defineSignal<[JobDefinitionInput]>('apply');
/** Begins nothing until `resume`: what comes meanwhile waits; times of the schedule pass by. */
export const pauseDefinitionSignal = defineSignal<[{ reason?: string }?]>('pause');
export const resumeDefinitionSignal = defineSignal<[]>('resume');
/** Ends it when its runs are over. What waits is not begun. An `apply` that comes before that revokes it. */
export const deleteDefinitionSignal = defineSignal<[{ reason?: string }?]>('delete');
/** The repository has changed. */
export const repositoryChangeSignal = defineSignal<[RepositoryChange]>('change');
/** Nothing runs for a change set any more, and nothing waits. */
export const turnEndedSignal = defineSignal<[TurnEndedNews]>('turnEnded');
export const jobDefinitionStatusQuery = defineQuery<JobDefinitionStatus>('status');
/** What holds. */
export const jobDeclarationQuery = defineQuery<JobDefinitionInput | undefined>('declaration');
