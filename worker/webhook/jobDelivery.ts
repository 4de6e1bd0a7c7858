/** Job event of a delivery, in terms of the workflows instead of a CI server. */
import type { CiServerKind } from '../../core/domain/ciServerKind.ts';
import type { JobEvent, RunnerJobEvent } from '../../core/contract/index.ts';

/** Event of a job, for the set that has to serve it and for the runner that runs it. */
export interface JobDelivery {
  readonly ciServer: CiServerKind;
  readonly event: JobEvent;
  /** Slug of the enterprise that the repository's owner belongs to. */
  readonly enterprise?: string;
  /** Runner of the job, if Holdfast may have created it. */
  readonly runner?: { readonly name: string; readonly event: RunnerJobEvent };
  /** Time from queued to started (ms). Present for `in_progress`. */
  readonly startupMs?: number;
  /** Time from started to completed (ms). Present for `completed`, if a runner ran the job. */
  readonly executionMs?: number;
}

/**
 * Pattern of all names that Holdfast gives to runners. A foreign name must not become part of a
 * query.
 */
export const OUR_RUNNER_NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;
