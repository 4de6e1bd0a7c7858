import { defineSignal, setDefaultSignalHandler, setHandler } from '@temporalio/workflow';

/** Signal of a workflow, with the function that receives it. */
export interface GatedSignal {
  readonly name: string;
  /** Description shown in the workflow's metadata. */
  readonly description: string;
  /**
   * Receives one signal, without waiting.
   *
   * @returns the number of events in the signal
   */
  readonly take: (body: unknown) => number;
}

/**
 * Maximum number of signals that one activation receives. The SDK needs 0.4 ms for each on an idle
 * core.
 */
const MAX_SIGNALS = 500;
/**
 * Maximum number of events in these signals. A set handles 4,000 to 10,800 a second on an idle
 * core, and a busy core may be three times slower. A smaller limit lets a run grow under bursts,
 * because it cannot continue as new while signals wait.
 */
const MAX_EVENTS = 6_000;

/**
 * Limits the signals that one activation receives. Without a limit, thousands of signals that
 * accumulated while no worker was running exceed the SDK's limit of 5 s for an activation, in each
 * new attempt.
 *
 * A full gate removes the handlers, so that the SDK buffers the other signals in their order. The
 * workflow has to wait for an activity, which ends the activation, and then call {@link open}
 * again. Until then it must neither continue as new nor complete: both would lose the buffered
 * signals.
 */
export class SignalGate {
  readonly #signals: readonly GatedSignal[];
  #taken = { signals: 0, events: 0 };
  #full = true;

  constructor(signals: readonly GatedSignal[]) {
    this.#signals = signals;
  }

  /** Whether more signals may be waiting than were received. */
  get isFull(): boolean {
    return this.#full;
  }

  /** Resets the counters after the received signals have been handled. */
  restart(): void {
    this.#taken = { signals: 0, events: 0 };
  }

  /** Receives the buffered signals, oldest first, and all signals from now on. */
  open(): void {
    this.restart();
    this.#full = false;
    // With handlers by name, all buffered signals of one name would be delivered before those of
    // the next.
    setDefaultSignalHandler((name, body) => {
      const signal = this.#signals.find((each) => each.name === name);
      if (signal !== undefined) this.#take(signal, body);
    });
    if (this.#full) return;
    setDefaultSignalHandler(undefined);
    for (const signal of this.#signals)
      setHandler(defineSignal<[unknown]>(signal.name), (body) => this.#take(signal, body), {
        description: signal.description,
      });
  }

  #take({ take }: GatedSignal, body: unknown): void {
    this.#taken.signals++;
    this.#taken.events += take(body);
    if (this.#taken.signals >= MAX_SIGNALS || this.#taken.events >= MAX_EVENTS) this.#close();
  }

  #close(): void {
    this.#full = true;
    setDefaultSignalHandler(undefined);
    for (const { name } of this.#signals) setHandler(defineSignal(name), undefined);
  }
}
