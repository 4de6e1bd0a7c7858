/** A declared job: what its workflow is told by the signal `apply`, and one document of `holdfast job apply`. */
import type { Durations } from '../domain/duration.ts';
import type { JobInput } from './jobInput.ts';

/** Pace of a declared job's re-checks, with the defaults that are right for production. */
export const DEFINITION_INTERVALS = {
  /** While something waits for a turn: how often it is looked whether those that have one are still under way; ten times as long otherwise. @default "1m" */
  relook: '1m',
} as const;

/** Which changes start the job. A change has to pass both filters; without one, all pass. Patterns are GitHub's: docs/jobs.md. */
export interface ChangeFilter {
  /** Branches pushed to, or that pull requests are to be merged into. Without them tags start it, too. */
  branches?: string[];
  /** Of the files that were changed, one has to match. */
  paths?: string[];
}

export interface JobSchedule {
  /** Five cron fields. */
  cron: string;
  /** IANA time zone. @default "UTC" */
  timeZone?: string;
}

/** What starts the job; at least one. `null` is `{}`. */
export interface JobTriggers {
  push?: ChangeFilter | null;
  pull_request?: ChangeFilter | null;
  schedule?: JobSchedule[];
}

export interface JobDefinitionInput extends Omit<JobInput, 'source'> {
  repository: string;
  on: JobTriggers;
  /** Pull requests of outsiders start it, too: with the volumes alone that hold nothing of others. @default false */
  untrusted?: boolean;
  /** Runs at once over all change sets, 1 to 100; others wait in the order in which they came. @default any number */
  maxConcurrency?: number;
  /** The defaults are right for production. */
  intervals?: Durations<typeof DEFINITION_INTERVALS>;
}
