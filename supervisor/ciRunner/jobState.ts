/** State of a CI runner, derived from its log lines and job hooks. */
export interface JobState {
  /** Whether the runner is registered and listening. It stays true. */
  readonly online: boolean;
  readonly busy: boolean;
  /** Whether a job was observed to start. It stays true. */
  readonly hadJob: boolean;
  /**
   * Whether the log has shown a state. The log then reports the start and end of every job. It
   * stays true.
   */
  readonly fromLog: boolean;
}

/** State of a runner before its first log line or job hook. */
export const INITIAL: JobState = { online: false, busy: false, hadJob: false, fromLog: false };

/**
 * Sign of the start or end of a job. `log…`: a line in the runner's log. `hook…`: one of the
 * supervisor's job hooks ran.
 */
export type JobSignal = 'logListening' | 'logStarted' | 'logEnded' | 'hookStarted' | 'hookEnded';

/**
 * Returns the state after a sign. If a runner is known to write a log, only its log counts: the
 * completed hook runs while the job is still being finished (uploading its logs, reporting its
 * result), and any job can write to the hooks' file.
 */
export function jobStateAfter(state: JobState, sign: JobSignal): JobState {
  switch (sign) {
    case 'logListening':
      return { ...state, online: true, fromLog: true };
    case 'logStarted':
      return { online: true, busy: true, hadJob: true, fromLog: true };
    case 'hookStarted':
      return state.fromLog ? state : { ...state, online: true, busy: true, hadJob: true };
    case 'logEnded':
      return { ...state, busy: false, fromLog: true };
    case 'hookEnded':
      return state.fromLog ? state : { ...state, busy: false };
  }
}

/**
 * Returns whether the readiness probe succeeds: no job is running. An `ephemeral` runner takes one
 * job and does not become ready again after it, so "ready" always means that it has had no job.
 * Readers that assumed a busy runner after a failed probe can then revoke that.
 */
export function isReady({ online, busy, hadJob }: JobState, ephemeral: boolean): boolean {
  return online && !(ephemeral ? hadJob : busy);
}

/**
 * State of the last job in the records of a CI runner:
 *
 * - `none`: there was no job
 * - `running`: it was running when the runner ended
 * - `interrupted`: it ended after the runner had received a signal
 * - `completed`: it completed
 */
export type JobRecord = 'none' | 'running' | 'interrupted' | 'completed';

/** Facts about the end of a runner that determine the record of its job. */
export interface RunnerEnd {
  /** Whether a job was running when the first signal of the stop was sent. */
  readonly busyWhenSignalled: boolean;
  /** Whether the runner exited with 0, and its kind does that only after its job. */
  readonly finishedJob: boolean;
}

/** Returns the record of the last job. */
export function jobRecord(
  state: JobState,
  { busyWhenSignalled, finishedJob }: RunnerEnd,
): JobRecord {
  if (!state.hadJob) return 'none';
  if (finishedJob) return 'completed';
  if (state.busy) return 'running';
  return busyWhenSignalled ? 'interrupted' : 'completed';
}
