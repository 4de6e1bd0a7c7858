/**
 * Estimates the number of events in the history of a set's run, from the work that the loop has
 * done. The number that the worker reports can differ in a replay.
 */

/** Events for an iteration with an activity, and perhaps a timer, each with its workflow task. */
const TURN = 9;
/** Events for a command: its signal, the signal of its reply, and their workflow tasks. */
const COMMAND = 9;
/** Number of events after which a run continues as new. */
const MOST = 1_000;
/**
 * Maximum number of job or runner events in one run. Each has 100 bytes or more, and Temporal
 * suggests to continue as new at 4 MB.
 */
const MAX_JOB_EVENTS = 10_000;

/**
 * Events for a signal that is not a command: the signal and, if it arrives alone, a workflow task
 * of three events.
 *
 * A worker takes a step for each of those tasks when it replays the run. It replays the run each
 * time that the server refuses to continue it as new because a signal arrived meanwhile
 * (`UnhandledCommand`). Each step waits for all other work of the worker: hundreds took 105 s,
 * where a workflow task may take ten. Much shorter runs are no better, because more than half of
 * the continuations of a busy set are refused at first.
 */
const SIGNAL = 4;

/** Counter that decides when a set continues as new. */
export class RunLength {
  #events = 0;
  #jobEvents = 0;

  /**
   * Counts a received signal.
   * @param jobEvents - number of job or runner events in the signal
   */
  countSignal(jobEvents: number): void {
    this.#events += SIGNAL;
    this.#jobEvents += jobEvents;
  }

  countCommand(): void {
    this.#events += COMMAND;
  }

  /**
   * Counts an iteration of the loop, other than those that signals and commands alone have caused.
   */
  countIteration(): void {
    this.#events += TURN;
  }

  /** Whether it is time to continue as new. */
  get isLong(): boolean {
    return this.#events > MOST || this.#jobEvents > MAX_JOB_EVENTS;
  }
}
