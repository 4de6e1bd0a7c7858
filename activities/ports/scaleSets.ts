import type { Scope } from '../../core/domain/ciServer.ts';
import type {
  ScaleSet,
  ScaleSetMessage,
  ScaleSetRequest,
  ScaleSetStatistics,
} from '../../core/domain/scaleSet.ts';

/** Scale sets of a CI server. Every method may throw {@link CiServerError}. */
export interface ScaleSets {
  /**
   * Returns the scale set with this name, or `undefined` if there is none.
   * @throws CiServerError `name_taken` if another system created it and `adopt` is not set
   */
  find(request: ScaleSetRequest, signal?: AbortSignal): Promise<ScaleSet | undefined>;
  /**
   * Returns the scale set with this name, and creates it if there is none. One that exists keeps its
   * labels: see `relabel`.
   * @throws CiServerError `name_taken` if another system created it and `adopt` is not set;
   * `rejected` if the server cannot store the mark and `adopt` is not set
   */
  ensure(request: ScaleSetRequest, signal?: AbortSignal): Promise<ScaleSet>;
  /**
   * Changes a scale set to have the requested labels. Only the holder of its session may do so:
   * otherwise another system is using it.
   * @throws CiServerError `rejected` if the server cannot store the mark and `adopt` is not set
   */
  relabel(scaleSet: ScaleSet, request: ScaleSetRequest, signal?: AbortSignal): Promise<ScaleSet>;
  /**
   * Removes the scale set with this name and mark, or with `adopt` the one with this name.
   * @returns `absent` if there is none, or if another system created it
   */
  remove(
    request: Omit<ScaleSetRequest, 'labels'>,
    signal?: AbortSignal,
  ): Promise<'removed' | 'absent'>;
  /**
   * Opens the only session of a scale set. A request whose response is lost leaves a session with
   * an unknown ID, so it is never repeated by the adapter.
   * @param owner - name that the server shows to others who request a session
   * @throws CiServerError `conflict` if a session exists; `session_lost` if the scale set is gone
   */
  openSession(
    scope: Scope,
    scaleSetId: number,
    owner: string,
    signal?: AbortSignal,
  ): Promise<ScaleSetSession>;
  /**
   * Continues a session that another process opened.
   * @throws CiServerError `session_lost` if the server has ended it
   */
  adoptSession(
    scope: Scope,
    scaleSetId: number,
    sessionId: string,
    signal?: AbortSignal,
  ): Promise<ScaleSetSession>;
  /** Returns the ID of the runner with this name, or `undefined` if there is none. */
  runnerId(scope: Scope, name: string, signal?: AbortSignal): Promise<string | undefined>;
  /**
   * Removes a runner of a scale set.
   * @throws CiServerError `busy` while it runs a job
   */
  removeRunner(scope: Scope, runnerId: string, signal?: AbortSignal): Promise<'removed' | 'absent'>;
}

/**
 * A session: the permission to read the messages of a scale set. Its token stays in this object and
 * is renewed by it. Every method throws CiServerError `session_lost` if the server has ended the
 * session.
 */
export interface ScaleSetSession {
  readonly id: string;
  /** Numbers at the time at which the session was opened or adopted. */
  readonly statistics: ScaleSetStatistics;
  /**
   * Waits for the next message, about 50 s.
   * @param last - ID of the message that was acknowledged last; 0 for none
   * @param capacity - number of jobs that the scale set can run at a time, which limits the jobs
   * that the server assigns to it
   * @returns `undefined` if there was none
   */
  next(last: number, capacity: number, signal?: AbortSignal): Promise<ScaleSetMessage | undefined>;
  /** Removes a message from the queue. A message that is no longer there is ignored. */
  acknowledge(messageId: number, signal?: AbortSignal): Promise<void>;
  /** Acquires available jobs. @returns the IDs of the acquired ones */
  acquire(requestIds: readonly number[], signal?: AbortSignal): Promise<number[]>;
  /** Ends the session, so that the next one can be opened at once. */
  close(signal?: AbortSignal): Promise<void>;
}
