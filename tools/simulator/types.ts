/** Types of the control API: jobs, runners, requests and webhook deliveries, as plain JSON. */

/**
 * Scope of registrations and credentials, as in GitHub's URLs: `orgs/acme`, `repos/acme/widgets`,
 * `enterprises/big`.
 */
export type ScopePath = string;

/** How a runner reports the end of a job. */
export type JobResult = 'Succeeded' | 'Failed' | 'Canceled';

/** GitHub's `conclusion` of a job. */
export type JobConclusion = 'success' | 'failure' | 'cancelled';

/** A job to be queued. */
export interface JobSpec {
  /** `owner/repo`. A repository's, its organization's and its enterprise's runners may take it. */
  repo: string;
  /** Labels that the runner must have (case-insensitive). @default ["self-hosted"] */
  labels?: string[];
  /** @default "build" */
  name?: string;
  /** Shell command, run with `/bin/sh -c`. @default `sleep` for `sleepMs`, else `true` */
  command?: string;
  /** Duration of the job on a {@link SimulatedRunner} (ms); also used in the default `command`. */
  sleepMs?: number;
  /**
   * Result of the job on a SimulatedRunner. A runner process reports the result of its command.
   * @default "Succeeded"
   */
  result?: JobResult;
  run_id?: number;
  /** @default 1 */
  run_attempt?: number;
  /** @default "CI" */
  workflow_name?: string;
}

/** A job, as the control API shows it. Times are ISO 8601. */
export interface SimulatedJob {
  id: number;
  run_id: number;
  run_attempt: number;
  name: string;
  workflow_name: string;
  repo: string;
  labels: string[];
  command: string;
  sleepMs?: number;
  plannedResult?: JobResult;
  /**
   * Status. `assigned`: sent to a runner that has not started it; GitHub's API returns `queued` for
   * it.
   */
  status: 'queued' | 'assigned' | 'in_progress' | 'completed';
  conclusion: JobConclusion | null;
  /** Why the job ended otherwise than by its command, e.g. a runner that was lost. */
  annotation?: string;
  runner_id: number | null;
  runner_name: string | null;
  runner_group_id: number | null;
  runner_group_name: string | null;
  /** Lines the job printed. */
  output: string[];
  cancelRequested: boolean;
  /** How often it was handed to a runner. */
  assignments: number;
  created_at: string;
  started_at: string | null;
  completed_at: string | null;
}

/** A registration in its actual state, independent of faults of the REST API. */
export interface SimulatedRegistration {
  id: number;
  name: string;
  scope: ScopePath;
  groupId: number;
  labels: string[];
  ephemeral: boolean;
  jit: boolean;
  status: 'online' | 'offline';
  busy: boolean;
  jobId?: number;
  /** The scale set it belongs to. */
  scaleSetId?: number;
  version: string | null;
}

/** A scale set, as the control API shows it. */
export interface SimulatedScaleSet {
  id: number;
  name: string;
  scope: ScopePath;
  groupId: number;
  labels: string[];
  /** Capacity in the latest poll. */
  capacity: number;
  /** All capacities of polls, in order, without repetitions. */
  capacities: number[];
  session?: { id: string; owner: string };
  available: number;
  assigned: number;
  running: number;
  unacknowledged: number;
  undelivered: number;
}

/** One request to the REST API (the runner protocol and the control API are not counted). */
export interface RecordedRequest {
  /** ISO 8601. */
  at: string;
  /** E.g. `DELETE /orgs/{org}/actions/runners/{runner_id}`, as in GitHub's description. */
  endpoint: string;
  /** Requested path, without the query and without `/api/v3`. */
  path: string;
  status: number;
  /** Name of the credential, if it was known. */
  credential?: string;
}

/** Counters of the REST API. */
export interface RequestCounts {
  total: number;
  /** Requests by endpoint. */
  byEndpoint: Record<string, number>;
  /** Requests by `endpoint status`, e.g. `DELETE /orgs/{org}/actions/runners/{runner_id} 422`. */
  byStatus: Record<string, number>;
}

/** A webhook delivery that was tried, or lost on purpose. */
export interface WebhookDelivery {
  id: number;
  guid: string;
  /** ISO 8601. */
  delivered_at: string;
  redelivery: boolean;
  /** Seconds. */
  duration: number;
  status: string;
  /** 0 when there was no answer. */
  status_code: number;
  event: string;
  action: string;
  repository_id: number;
  /** `owner/repo`. */
  repo: string;
  payload: unknown;
  /** Dropped by a fault: never sent. */
  lost: boolean;
}
