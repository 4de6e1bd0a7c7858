/**
 * How many events the history of a set's run has, reckoned by what the loop has done: the length that the worker tells is not the same in every
 * replay.
 */

/** Events for each of what a run hears. */
export interface EventCosts {
  /** A signal that is no command. */
  readonly news: number;
  /** A turn of the loop that nothing but news or a command has called for. */
  readonly hearsay: number;
}

/** Any other turn: an activity, and perhaps a timer, each with its workflow task. */
const TURN = 9;
/** A command: its signal, its answer's, and their workflow tasks. */
const COMMAND = 9;
/** So many events end a run. */
const MOST = 1_000;
/** 100 bytes or more each; Temporal suggests to continue as new at 4 MB. */
const MAX_JOB_EVENTS = 10_000;

/**
 * News costs its signal and, if it comes alone, a workflow task of three events. A worker takes a step for each of those tasks when it reads the
 * run anew, as it does each time that the server refuses to continue it as new for news that came meanwhile (`UnhandledCommand`), and each step
 * stands in line with all else that the worker has to do: hundreds took 105 s, where a workflow task may take ten. Much shorter runs are no better,
 * because more than half of the continuations of a busy set are refused at first (docs/benchmarks.md).
 */
export const EVENT_COSTS_V2: EventCosts = { news: 4, hearsay: 0 };

/** Of runs that began with 0.1.0. News during an activity was reckoned too cheap: with 500 runners a run came to 2,958 events. */
export const EVENT_COSTS_V1: EventCosts = { news: 1, hearsay: 9 };

export class RunLength {
  readonly #reckoning: EventCosts;
  #events = 0;
  #jobEvents = 0;

  constructor(reckoning: EventCosts) {
    this.#reckoning = reckoning;
  }

  /** @param jobEvents - or news of runners, in one signal */
  news(jobEvents: number): void {
    this.#events += this.#reckoning.news;
    this.#jobEvents += jobEvents;
  }

  countCommand(): void {
    this.#events += COMMAND;
  }

  countIteration(isHearsay: boolean): void {
    this.#events += isHearsay ? this.#reckoning.hearsay : TURN;
  }

  /** Time to continue as new. */
  get isLong(): boolean {
    return this.#events > MOST || this.#jobEvents > MAX_JOB_EVENTS;
  }
}
