/** What a CI server shows of a job's run, beside the commit that it ran for. Plain data, the same for every CI server. */
import type { ReportedState, RunnerCause } from '../contract/index.ts';
import type { Scope } from './ciServer.ts';

/** All text is plain: whoever shows it sees to it that it reads as it is. A pod, or whoever wrote the job, may have written it. */
export interface CommitReport {
  /** The repository. */
  readonly scope: Scope;
  /** All of its id. */
  readonly commit: string;
  /** Names it among the reports about a commit: what was told last under this name is what counts. */
  readonly context: string;
  /** Id of the run's workflow. What is told of one run is shown as one. */
  readonly run: string;
  readonly state: ReportedState;
  /** Of one that did not end well. */
  readonly cause?: RunnerCause;
  /** When it came to be so, ISO 8601. */
  readonly at: string;
  /** A sentence or two. */
  readonly description: string;
  /** Lines for who looks closer. */
  readonly details: readonly string[];
  /** Address of the run's page. */
  readonly link?: string;
}

/** The CI server has it. */
export interface ReportTaken {
  /** What of it the credential may not show there, and why. */
  readonly withheld?: string;
}

/** Every context begins so: whoever reports can pass for nobody else. */
export const CONTEXT_PREFIX = 'holdfast/';

/** Abbreviations are not taken: SHA-1, or SHA-256. */
export function isFullCommitId(commit: string): boolean {
  return /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/i.test(commit);
}
