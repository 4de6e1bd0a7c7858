/**
 * The protocol between the simulator and its runners: JSON over HTTP under `/_runner`, with a long
 * poll for messages. It is not GitHub's, which is not public. This file has types and constants
 * only, because the runner program is copied as plain files.
 */

export const RUNNER_VERSION = '2.330.0';

/** POST /_runner/register, with a registration token in the body (config.sh of the real runner). */
export interface RegisterBody {
  scope: string;
  token: string;
  name: string;
  labels: string[];
  group?: string;
  ephemeral: boolean;
  /** Take over an existing registration of that name. */
  replace?: boolean;
  version: string;
}
export interface RegisterResponse {
  runnerId: number;
  name: string;
  credential: string;
}

/** POST /_runner/session. */
export interface SessionBody {
  version: string;
  os: string;
  arch: string;
  /** Channel on which messages arrive, instead of long polls (see `GET /_runner/channel`). */
  channel?: string;
}
export interface SessionResponse {
  sessionId: string;
  runnerId: number;
  runnerName: string;
  ephemeral: boolean;
}

/** The one reason why the server refuses a runner. */
export interface Rejection {
  reason:
    /**
     * The registration, or the registration token, does not exist. The real server returns the same
     * 404 for both.
     */
    | 'deleted'
    /** The session is unknown, e.g. after a restart of the server: open a new one. */
    | 'session'
    /** Another session of the same runner is open. */
    | 'conflict'
    /** The runner's version is refused. */
    | 'deprecated'
    /** The job is not this runner's (its lease ran out, or it ended). */
    | 'job';
}

/** A job as it is sent to a runner. */
export interface JobMessage {
  type: 'job';
  id: number;
  name: string;
  runId: number;
  runAttempt: number;
  repo: string;
  workflow: string;
  command: string;
  sleepMs?: number;
  plannedResult?: 'Succeeded' | 'Failed' | 'Canceled';
  /** How often to renew the lease, in ms. */
  renewEveryMs: number;
}
export interface CancelMessage {
  type: 'cancel';
  jobId: number;
}
export interface RejectionMessage extends Rejection {
  type: 'refused';
}
/** Response to a poll (204: none), or a message of a channel (with the session's id). */
export type RunnerMessage = JobMessage | CancelMessage | RejectionMessage;
export interface ChannelMessage {
  sessionId: string;
  message: RunnerMessage;
}

/** Body of POST /_runner/jobs/:id/output. `from` makes it idempotent. */
export interface OutputBody {
  from: number;
  lines: string[];
}
/** POST /_runner/jobs/:id/complete. */
export interface CompleteBody {
  result: 'Succeeded' | 'Failed' | 'Canceled';
}

/** Content of the file `.runner` in a JIT config, as far as this runner needs it. */
export interface JitRunnerFile {
  agentId: number;
  agentName: string;
  serverUrl: string;
  gitHubUrl: string;
  workFolder: string;
  ephemeral: boolean;
}
/** Content of the file `.credentials` in a JIT config. */
export interface JitCredentialsFile {
  scheme: string;
  data: { token: string };
}
