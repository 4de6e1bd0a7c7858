import { defineSignal, setDefaultSignalHandler, setHandler } from '@temporalio/workflow';

/** A signal of a workflow, with what takes it in. */
export interface GatedSignal {
  readonly name: string;
  /** For people, in the workflow's metadata. */
  readonly description: string;
  /** Takes one in, without waiting. @returns the number of events in it */
  readonly take: (body: unknown) => number;
}

/** Signals that one activation takes in at most. The SDK needs 0.4 ms for each on an idle core. */
const MAX_SIGNALS = 500;
/**
 * Events in those signals at most. A set takes in 4,000 to 10,800 a second on an idle core, and a
 * busy one may be three times slower. A smaller bound lets a run grow under bursts, because it
 * cannot continue as new while signals wait.
 */
const MAX_EVENTS = 6_000;

/**
 * Bounds the signals that one activation takes in. Without a bound, thousands that have piled up
 * while no worker ran exceed the SDK's 5 s for an activation, in each new attempt.
 *
 * A full gate removes the handlers, so that the SDK keeps the other signals in their order. The
 * workflow has to wait for an activity, which ends the activation, and {@link open} it again.
 * Until then it must neither continue as new nor end: both would lose what the SDK keeps.
 */
export class SignalGate {
  readonly #signals: readonly GatedSignal[];
  #taken = { signals: 0, events: 0 };
  #full = true;

  constructor(signals: readonly GatedSignal[]) {
    this.#signals = signals;
  }

  /** Whether more signals may wait than were taken in. */
  get isFull(): boolean {
    return this.#full;
  }

  /** Starts to count anew: what was taken in is dealt with. */
  restart(): void {
    this.#taken = { signals: 0, events: 0 };
  }

  /** Takes in the signals that were kept, the oldest first, and those that come from now on. */
  open(): void {
    this.restart();
    this.#full = false;
    // Handlers by name would be given all kept signals of one name before those of the next.
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
