/** Activities of the workflow `scaleSetListener`, and of the set that starts it. */
import type { ScaleSetListenerInput } from '../contract/index.ts';

/** Activities of the workflow `scaleSetListener`. */
export interface ScaleSetActivities {
  /**
   * Validates the input of a listener, without any request.
   * @throws ApplicationFailure `InvalidInput`, with every invalid field
   */
  admitListener(input: { input: unknown }): Promise<AdmittedListener>;
  /**
   * Holds the session of the scale set and reports to the runner set. Completes when the set
   * no longer wants a scale set, after a while, or when the workflow cancels it. The session stays
   * open. An attempt continues the session of the previous one.
   */
  listen(input: ListenInput): Promise<ListenResult>;
  /**
   * Ends the session of the listener, and removes the scale set if that is requested. Removes
   * nothing if another process has the session or another system created the scale set.
   */
  closeScaleSet(input: CloseScaleSetInput): Promise<void>;
  /**
   * Starts the listener of a set, or sends the changed input to the running one.
   * @returns the time of the call (ms since the epoch)
   */
  startListener(input: ScaleSetListenerInput): Promise<{ at: number }>;
}

/** Valid input of a listener, with a hash that does not depend on the order of its fields. */
export interface AdmittedListener {
  readonly listener: ScaleSetListenerInput;
  readonly hash: string;
}

/** Session of a scale set, as one attempt passes it to the next one. It contains no token. */
export interface SessionCursor {
  readonly sessionId: string;
  /**
   * Time of the attempt that opened the session, by the clock of the Temporal server (ms since the
   * epoch). The clocks of two workers may differ.
   */
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
  /** The time is over, or the workflow has cancelled the activity. */
  | { readonly kind: 'continue'; readonly cursor?: SessionCursor }
  /** The set has ended or no longer uses a scale set. `remove`: the scale set is to be removed. */
  | { readonly kind: 'ended'; readonly remove: boolean; readonly cursor?: SessionCursor };

/** Input of {@link ScaleSetActivities.closeScaleSet}. */
export interface CloseScaleSetInput {
  readonly listener: ScaleSetListenerInput;
  /** Session of the listener. Absent: it has none, and opens one to remove the scale set. */
  readonly cursor?: SessionCursor;
  /** Whether to remove the scale set. */
  readonly remove: boolean;
}
