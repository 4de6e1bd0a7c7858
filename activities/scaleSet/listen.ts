import { activityInfo, cancellationSignal, getClient, heartbeat } from '@temporalio/activity';
import { WorkflowNotFoundError } from '@temporalio/client';
import {
  scaleSetReportSignal,
  setWorkflowId,
  type ScaleSetReport,
} from '../../core/contract/index.ts';
import {
  type ListenInput,
  type ListenResult,
  type SessionCursor,
} from '../../core/activities/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { ScaleSetMessage, ScaleSetStatistics } from '../../core/domain/scaleSet.ts';
import { CiServerError } from '../ports/ciServerError.ts';
import { UnknownCredentialError } from '../ports/ciServer.ts';
import type { ActivityPorts, ScaleSetActivity } from '../ports/activityPorts.ts';
import type { ScaleSetSession } from '../ports/scaleSets.ts';
import { isAttemptReplaced, isWorkflowCancelled } from '../shared/cancellationReason.ts';
import { CapacityWatch } from './capacityWatch.ts';
import {
  checkListener,
  continueSession,
  requestOf,
  scaleSetsOf,
  sessionOwner,
} from './listenerScaleSet.ts';
import { toListenFailure } from './toListenFailure.ts';

/** Duration of one activity (ms), so that it ends before its start-to-close timeout. */
const LISTEN_MS = 50 * 60_000;
/**
 * Maximum age of the last report to the set (ms). After it the set gets the same numbers again, so
 * that it knows that they are still true.
 */
const MAX_REPORT_AGE_MS = 5 * 60_000;

/** State of one attempt, which the heartbeat details pass to the next one. */
interface ListenDetails {
  readonly cursor?: SessionCursor;
  /** Number of consecutive attempts that failed with the last problem. */
  readonly failures?: number;
  /** Time of the first of the consecutive attempts that failed (ms since the epoch). */
  readonly failingSince?: number;
  /** Problem that the set knows, and the time of the report (ms since the epoch). */
  readonly reported?: { readonly problem: string; readonly at: number };
}

/**
 * Holds the session of a scale set. For each message: acquires the available jobs, reports to
 * the set, acknowledges the message, and records that in the heartbeat. A crash between two of
 * these steps repeats them, and each bears repetition.
 *
 * An attempt continues the session of the previous one, so that a worker's death costs neither
 * messages nor the time until GitHub ends the session by itself.
 */
export async function listen(ports: ActivityPorts, input: ListenInput): Promise<ListenResult> {
  checkListener(input.listener);
  return await new Listener(ports, input).run();
}

class Listener {
  readonly #ports: ActivityPorts;
  readonly #input: ListenInput;
  readonly #until = performance.now() + LISTEN_MS;
  #details: ListenDetails;
  #statistics: ScaleSetStatistics | undefined;
  /** Jobs that GitHub has offered and that were not acquired, by the IDs of their requests. */
  readonly #offered = new Set<number>();
  /** Jobs that were acquired after the latest numbers. */
  #acquired = 0;
  #notifiedAt = 0;
  /** See {@link ScaleSetActivity.over}. */
  #isOver = false;

  constructor(ports: ActivityPorts, input: ListenInput) {
    this.#ports = ports;
    this.#input = input;
    const earlier = activityInfo().heartbeatDetails as ListenDetails | undefined;
    this.#details = { ...omitUndefined({ cursor: input.cursor }), ...earlier };
  }

  async run(): Promise<ListenResult> {
    // A heartbeat delays the next one, and a worker that died before that of the session would leave
    // one that no attempt knows. So there is none before it, unless opening it takes long.
    let isLong = false;
    const timer = setInterval(
      () => {
        if (isLong || this.#details.cursor !== undefined) this.#beat();
        isLong = true;
      },
      (activityInfo().heartbeatTimeoutMs ?? 15_000) / 3,
    );
    const orders = new CapacityWatch(getClient(), this.#input.listener.set);
    try {
      return await this.#listen(orders);
    } catch (error) {
      this.#isOver = isAttemptReplaced(cancellationSignal());
      throw await this.#failure(error);
    } finally {
      clearInterval(timer);
      orders.stop();
      this.#report({ up: false, over: this.#isOver });
    }
  }

  async #listen(orders: CapacityWatch): Promise<ListenResult> {
    const signal = cancellationSignal();
    try {
      await orders.start();
      const first = orders.orders;
      if (first.kind === 'end') return this.#ended(first.remove);
      const session = await this.#open(signal);
      while (performance.now() < this.#until) {
        const now = orders.orders;
        if (now.kind === 'end') return this.#ended(now.remove);
        const { lastMessageId = 0 } = this.#details.cursor ?? {};
        const message = await orders.interruptible(
          signal,
          async (interrupted) => await session.next(lastMessageId, now.capacity, interrupted),
        );
        // The orders may have changed since the poll began.
        const { orders: then } = orders;
        const capacity = then.kind === 'end' ? 0 : then.capacity;
        if (message !== undefined) await this.#take(session, message, capacity, signal);
        else {
          this.#report({ up: true });
          await this.#acquire(session, capacity, signal);
          if (Date.now() - this.#notifiedAt > MAX_REPORT_AGE_MS) await this.#notifySet({});
        }
        this.#details = omitUndefined({ cursor: this.#details.cursor });
      }
      return this.#stopped();
    } catch (error) {
      if (isWorkflowCancelled(signal)) return this.#stopped();
      throw error;
    }
  }

  #stopped(): ListenResult {
    return { kind: 'continue', ...omitUndefined({ cursor: this.#details.cursor }) };
  }

  #ended(remove: boolean): ListenResult {
    this.#isOver = true;
    return { kind: 'ended', remove, ...omitUndefined({ cursor: this.#details.cursor }) };
  }

  /** Continues the session of the previous attempt, or opens one. */
  async #open(signal: AbortSignal): Promise<ScaleSetSession> {
    const { listener } = this.#input;
    const sets = scaleSetsOf(this.#ports, listener);
    const request = await requestOf(this.#ports, listener);
    const found = await sets.ensure(request, signal);
    const { cursor } = this.#details;
    let session = cursor && (await continueSession(sets, listener, found.id, cursor, signal));
    if (session === undefined) {
      // Without the signal: the response to an aborted request would leave an unknown session open.
      session = await sets.openSession(listener.scope, found.id, sessionOwner(listener));
      const openedAt = activityInfo().currentAttemptScheduledTimestampMs;
      this.#record({ sessionId: session.id, openedAt, lastMessageId: 0 });
    }
    const scaleSet = await sets.relabel(found, request, signal);
    this.#statistics = session.statistics;
    this.#report({ up: true });
    const dropped = scaleSet.droppedLabels.filter((label) => !label.startsWith('holdfast-'));
    await this.#notifySet(
      dropped.length === 0
        ? {}
        : {
            problem: `GitHub has dropped the labels ${dropped.join(', ')}: jobs must request ${scaleSet.labels.join(', ')}`,
          },
    );
    return session;
  }

  async #take(
    session: ScaleSetSession,
    message: ScaleSetMessage,
    capacity: number,
    signal: AbortSignal,
  ): Promise<void> {
    const before = this.#statistics;
    this.#statistics = message.statistics;
    this.#acquired = 0;
    for (const event of message.events)
      if (event.kind === 'available') this.#offered.add(event.requestId);
    this.#report({ up: true, messages: 1 });
    await this.#acquire(session, capacity, signal);
    const started = namesOf(message, 'started');
    const completed = namesOf(message, 'completed');
    const { cursor } = this.#details;
    const isReportDue =
      started.length + completed.length > 0 ||
      before?.assigned !== message.statistics.assigned ||
      before.running !== message.statistics.running;
    if (isReportDue && cursor !== undefined)
      await this.#notifySet({ started, completed }, { ...cursor, lastMessageId: message.id });
    await session.acknowledge(message.id, signal);
    if (cursor !== undefined) this.#record({ ...cursor, lastMessageId: message.id });
  }

  /**
   * Acquires offered jobs, as many as the set can run. The others are acquired when there is room;
   * GitHub offers them again if this process ends before.
   */
  async #acquire(session: ScaleSetSession, capacity: number, signal: AbortSignal): Promise<void> {
    const assigned = (this.#statistics?.assigned ?? 0) + this.#acquired;
    const room = Math.max(0, capacity - assigned);
    const wanted = [...this.#offered].slice(0, room);
    if (wanted.length === 0) return;
    const acquired = await session.acquire(wanted, signal);
    // A job that was not acquired belongs to another scale set, or was cancelled.
    for (const id of wanted) this.#offered.delete(id);
    this.#acquired += acquired.length;
    this.#report({ up: true, acquired: acquired.length });
  }

  /** Sends a problem to the set, unless it knows it. */
  async #notifyProblem(problem: string): Promise<void> {
    const { reported } = this.#details;
    const isKnown = reported?.problem === problem && Date.now() - reported.at < MAX_REPORT_AGE_MS;
    if (isKnown) return;
    await this.#notifySet({ problem });
    this.#beat();
  }

  /** Sends the latest numbers to the set. A set that has ended shows in its orders. */
  async #notifySet(
    { started = [], completed = [], problem }: Partial<ScaleSetReport>,
    cursor = this.#details.cursor,
  ): Promise<void> {
    const statistics = this.#statistics;
    const report: ScaleSetReport = {
      at: Date.now(),
      started,
      completed,
      ...omitUndefined({
        problem,
        position: cursor && { openedAt: cursor.openedAt, messageId: cursor.lastMessageId },
        numbers: statistics && { assigned: statistics.assigned, running: statistics.running },
      }),
    };
    const set = getClient().workflow.getHandle(setWorkflowId(this.#input.listener.set));
    try {
      await set.signal(scaleSetReportSignal, report);
      this.#notifiedAt = report.at;
      const { reported: _, ...details } = this.#details;
      this.#details =
        problem === undefined ? details : { ...details, reported: { problem, at: report.at } };
    } catch (error) {
      if (!(error instanceof WorkflowNotFoundError)) throw error;
    }
  }

  #record(cursor: SessionCursor): void {
    this.#details = { ...this.#details, cursor };
    this.#beat();
  }

  #beat(): void {
    heartbeat(this.#details);
  }

  #report(activity: ScaleSetActivity): void {
    this.#ports.onScaleSet?.(this.#input.listener.set, activity);
  }

  /** Notifies the set about the problem, and returns the failure with its retry delay. */
  async #failure(error: unknown): Promise<unknown> {
    const isUnknown = error instanceof UnknownCredentialError;
    if (!isUnknown && !(error instanceof CiServerError)) return error;
    const isLost = !isUnknown && error.kind === 'session_lost';
    const { cursor, failures = 0, failingSince = Date.now(), reported } = this.#details;
    this.#details = omitUndefined({
      failures: isUnknown ? failures : failures + 1,
      failingSince,
      reported,
      cursor: isLost ? undefined : cursor,
    });
    this.#beat();
    this.#statistics = undefined;
    // A session that GitHub has ended is opened again at once.
    if (!isLost) await this.#notifyProblem(error.message);
    return toListenFailure(error, { times: failures + 1, failingMs: Date.now() - failingSince });
  }
}

function namesOf({ events }: ScaleSetMessage, kind: 'started' | 'completed'): string[] {
  return events.flatMap((event) =>
    event.kind === kind && event.runnerName !== undefined ? [event.runnerName] : [],
  );
}
