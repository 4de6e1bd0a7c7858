/**
 * Public names of an explanation: why a job, a runner or a set waits, and the evidence of how one
 * ended. `holdfast why` prints it, and the status of a set contains its part of it.
 */

/**
 * Causes of waiting. The set is closed: programs may switch over it. docs/troubleshooting.md says
 * what each means and what to do.
 */
export const WAIT_CAUSES = [
  // The workflow does not proceed.
  'workflow_paused',
  'no_worker',
  'no_answer',
  'not_admitted',
  // The set starts no runner for the job.
  'deleting',
  'paused',
  'breaker',
  'runner_hours',
  'limit',
  'schedule',
  'max',
  'capacity',
  'session_held',
  'scale_set',
  'runner_list',
  'recreation_guard',
  // The set waits for something else.
  'rollout',
  'scale_down',
  'drain_unconfirmed',
  'reroute',
  'queued_long',
  // The job has no runner.
  'no_set',
  'not_reported',
  'starting',
  'not_assigned',
  // The runner is not online.
  'registration_pace',
  'rate_limit',
  'credential_rejected',
  'ci_server_unreachable',
  'cluster_unreachable',
  'cluster_forbidden',
  'wrong_location',
  'quota',
  'pod_rejected',
  'volume_claim',
  'unschedulable',
  'image_pull',
  'container_start',
  'pod_start',
  'coming_online',
  // The runner is online, or ends.
  'idle',
  'job_running',
  'unregistering',
  'tear_down',
  'activity_failing',
] as const;
/** Cause of waiting. */
export type WaitCause = (typeof WAIT_CAUSES)[number];

/** One cause of waiting, with its facts. */
export interface WaitReason {
  cause: WaitCause;
  /** The cause in words, with its numbers and with the text of the system that reported it. */
  text: string;
  /** Time since which the cause applies (ISO 8601). Absent: unknown. */
  since?: string;
  /** Time until which it applies, or of the next attempt (ISO 8601). Absent: unknown. */
  until?: string;
  /** Command or change that ends the wait. Absent: nothing is to be done, or the text says it. */
  fix?: string;
  /** Workflow id of the runner that has this cause. Absent: the subject itself, or its set. */
  runner?: string;
}

/** Job that a set knows, as the query `jobs` returns it. */
export interface SetJobStatus {
  /** ID of the job at the CI server. */
  jobId: string;
  /** Attempt of the workflow run at the CI server. A re-run is a different job. */
  runAttempt: number;
  /** `owner/repo`. Absent for a completed job. */
  repository?: string;
  /**
   * `queued`: it waits for a runner. `left`: it does not wait any more, and no event has reported
   * why. `assigned`: it runs on a runner. `completed`: it is over.
   */
  state: 'queued' | 'left' | 'assigned' | 'completed';
  /** Time at which the job was queued, or completed (ISO 8601). */
  since: string;
  /** Runner that runs the job, by its name at the CI server. */
  runnerName?: string;
  /** Workflow id of the set that the job was rerouted to. */
  reroutedTo?: string;
  /** Whether another set has rerouted the job to this one. */
  reroutedHere?: true;
  /** Whether limits of the set hold back queued jobs of its repository. */
  limited?: true;
}

/** Maximum number of jobs in one answer to the query `jobs`. */
export const MAX_SET_JOBS = 100;

/** Selection of the query `jobs`. At least one field is required. */
export interface SetJobsRequest {
  /** ID of the job at the CI server. */
  jobId?: string;
  /** `owner/repo`: its jobs that have not completed. */
  repository?: string;
  /** With `repository`: only jobs of the workflow run with this ID at the CI server. */
  runId?: string;
}

/** Kinds of subjects that can be explained. */
export type WhySubjectKind = 'job' | 'run' | 'runner' | 'set';

/**
 * Reasons why a set serves a job. `reported`: the set has received the job's events, or has found
 * it at the CI server. `rerouted`: another set could not serve it. `only_match`: no other set
 * matches its labels and repository. `fewest_labels`, `narrowest_scope`, `runner_group`: several
 * match, and this one comes first by that rule. `shared`: equal sets share the jobs. `scale_set`:
 * GitHub assigns the job to the set's scale set.
 */
export type ServedBecause =
  | 'reported'
  | 'rerouted'
  | 'only_match'
  | 'fewest_labels'
  | 'narrowest_scope'
  | 'runner_group'
  | 'shared'
  | 'scale_set';

/** Set that serves a job. */
export interface ServingSet {
  /** Workflow id. */
  id: string;
  labels: string[];
  because: ServedBecause;
  /** Set that the job was rerouted from. Only with `rerouted`, if it is known. */
  reroutedFrom?: string;
}

/** Reasons why a set cannot serve a job. */
export interface SetMismatch {
  /** Workflow id of the set. */
  id: string;
  labels: string[];
  /**
   * `labels`: it lacks labels of the job. `no_labels`: the job has none, and the set has no
   * `groupJobs`. `repository`: it is outside of the set's scope. `deleting`: the set ends.
   * `unknown`: what the set serves is not known.
   */
  mismatches: ('labels' | 'no_labels' | 'repository' | 'deleting' | 'unknown')[];
  /** Labels of the job that the set lacks. */
  missingLabels: string[];
  /** Scope of the set. */
  scope: string;
}

/** Verdict on a runner or set that has ended. */
export interface WhyVerdict {
  outcome: string;
  cause?: string;
  message: string;
  /** Facts that the verdict is based on, one sentence each. */
  evidence: string[];
}

/** Link to the page of a workflow in Temporal's UI. */
export interface WhyLink {
  /** Workflow id. */
  id: string;
  url: string;
}

/** Answer of `holdfast why`. */
export interface WhyAnswer {
  subject: { kind: WhySubjectKind; id: string };
  /**
   * `waiting`: for its causes. `running`: a job runs. `ready`: it waits for nothing but work.
   * `ended`: see `verdict`. `unknown`: the facts do not say; see `missing`.
   */
  state: 'waiting' | 'running' | 'ready' | 'ended' | 'unknown';
  /** Causes, the decisive one first. */
  causes: WaitReason[];
  /** Set that serves the job. */
  servedBy?: ServingSet;
  /** Sets that cannot serve the job. Only if no set serves it. */
  otherSets?: SetMismatch[];
  /** Workflow id of the runner that runs the job. */
  runner?: string;
  verdict?: WhyVerdict;
  /** Jobs of the repository that the sets know. Only of a run. */
  jobs?: (SetJobStatus & { set: string })[];
  /** Facts that could not be read, one sentence each. Empty: all were read. */
  missing: string[];
  /** Pages in Temporal's UI. Empty if its address is unknown. */
  links: WhyLink[];
}
