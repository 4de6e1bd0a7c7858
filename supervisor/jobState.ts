/** What is known of a CI runner from its log lines and its job hooks. */
export interface JobState {
  /** Registered and listening; stays so. */
  readonly online: boolean;
  readonly busy: boolean;
  /** The log told of the running job: then the log tells of its end, too. */
  readonly byLog: boolean;
}

export const NO_JOB_YET: JobState = { online: false, busy: false, byLog: false };

/** `log…`: a line of the runner's log. `hook…`: a job hook of ours ran. */
export type JobSign = 'logListening' | 'logStarted' | 'logEnded' | 'hookStarted' | 'hookEnded';

/**
 * The completed hook runs while the job is still being finished (its logs uploaded, its result reported), so the log's own line wins
 * when this runner has shown that it writes one.
 */
export function jobStateAfter(state: JobState, sign: JobSign): JobState {
  switch (sign) {
    case 'logListening':
      return { ...state, online: true };
    case 'logStarted':
      return { online: true, busy: true, byLog: true };
    case 'hookStarted':
      return { ...state, online: true, busy: true };
    case 'logEnded':
      return { ...state, busy: false, byLog: false };
    case 'hookEnded':
      return state.byLog ? state : { ...state, busy: false };
  }
}
