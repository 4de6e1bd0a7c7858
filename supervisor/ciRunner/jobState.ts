/** State of a CI runner, derived from its log lines and job hooks. */
export interface JobState {
  /** Whether the runner is registered and listening. It stays true. */
  readonly online: boolean;
  readonly busy: boolean;
  /** Whether a job was seen to start. It stays true. */
  readonly hadJob: boolean;
  /**
   * Whether the log has shown a state. The log then reports the start and end of every job. It
   * stays true.
   */
  readonly fromLog: boolean;
}

/** State of a runner before its first log line or job hook. */
export const INITIAL: JobState = { online: false, busy: false, hadJob: false, fromLog: false };

/** `log…`: a line of the runner's log. `hook…`: a job hook of ours ran. */
export type JobSignal = 'logListening' | 'logStarted' | 'logEnded' | 'hookStarted' | 'hookEnded';

/**
 * A runner that has shown that it writes a log is believed by its log alone: the completed hook runs while the job is still being finished (its logs
 * uploaded, its result reported), and into the hooks' file any job can write.
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
 * What the readiness probe answers: no job. A runner that takes one job only (`ephemeral`) does not come back from it, so "ready" always means
 * that it has had none: whoever saw a probe go astray, and took the runner for busy, can take that back.
 */
export function isReady({ online, busy, hadJob }: JobState, ephemeral: boolean): boolean {
  return online && !(ephemeral ? hadJob : busy);
}

/**
 * What a CI runner's records say of its (last) job: there was `none`; it was `running` when the runner ended; it was `interrupted`: it
 * ended after the runner had been signalled; it is `done`.
 */
export type JobRecord = 'none' | 'running' | 'interrupted' | 'completed';

/** @param busyWhenSignalled a job was running when the stop's first signal was sent */
export function jobRecord(state: JobState, busyWhenSignalled: boolean): JobRecord {
  if (!state.hadJob) return 'none';
  if (state.busy) return 'running';
  return busyWhenSignalled ? 'interrupted' : 'completed';
}
