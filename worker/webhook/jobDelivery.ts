/** A job event of a delivery, in the terms of the workflows and not of a CI server. */
import type { CiServerKind } from '../../core/domain/ciServerKind.ts';
import type { JobEvent, RunnerJobEvent } from '../../core/contract/index.ts';

/** One event of one job, for the set that has to serve it and for the runner that runs it. */
export interface JobDelivery {
  readonly ciServer: CiServerKind;
  readonly event: JobEvent;
  /** Slug of the enterprise that the repository's owner belongs to. */
  readonly enterprise?: string;
  /** The runner, where it may be one of ours. */
  readonly runner?: { readonly name: string; readonly event: RunnerJobEvent };
  /** From queued to started, in ms; with `in_progress`. */
  readonly startupTimeoutMs?: number;
  /** From started to completed, in ms; with `completed`, where a runner ran it. */
  readonly executionMs?: number;
}

/**
 * Every name that Holdfast gives a runner. Another name belongs to a runner of others, and must not
 * get into a query.
 */
export const OUR_RUNNER_NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;
