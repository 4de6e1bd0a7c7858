/** Activities of the workflow `scaleSetListener`, and of the set that starts it. */
import type { ScaleSetListenerInput } from '../contract/index.ts';

/** Activities of the workflow `scaleSetListener`. */
export interface ScaleSetActivities {
  /**
   * Validates the input of a listener, without any request.
   * @throws ApplicationFailure `InvalidInput`, with every invalid field
   */
  admitListener(input: { input: unknown }): Promise<ScaleSetListenerInput>;
  /**
   * Holds the session of the scale set and sends its news to the runner set. Completes when the set
   * no longer wants a scale set, or after a while, to be scheduled again. An attempt continues the
   * session of the previous one.
   */
  listen(input: ListenInput): Promise<ListenResult>;
  /** Removes the scale set at the CI server, unless another system created it. */
  removeScaleSet(input: ScaleSetListenerInput): Promise<void>;
  /**
   * Starts the listener of a set, or tells the running one its changed input.
   * @returns the time of the call (ms since the epoch)
   */
  startListener(input: ScaleSetListenerInput): Promise<{ at: number }>;
}

/** Session of a scale set, as one attempt passes it to the next one. It contains no token. */
export interface SessionCursor {
  readonly sessionId: string;
  /** Time at which the session was opened, by the worker's clock (ms since the epoch). */
  readonly openedAt: number;
  /** ID of the last acknowledged message; 0 for none. */
  readonly lastMessageId: number;
}

/** Input of {@link ScaleSetActivities.listen}. */
export interface ListenInput {
  readonly listener: ScaleSetListenerInput;
  /** Session of the previous activity. */
  readonly cursor?: SessionCursor;
}

/** Result of {@link ScaleSetActivities.listen}. */
export type ListenResult =
  /** The time is over; the session stays open. */
  | { readonly kind: 'continue'; readonly cursor?: SessionCursor }
  /** The set has ended or no longer uses a scale set. `remove`: the scale set is to be removed. */
  | { readonly kind: 'ended'; readonly remove: boolean };
