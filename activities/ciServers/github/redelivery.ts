import type { ListedDelivery } from './responses.ts';

/** Decision about the failed deliveries that were found. */
export interface RedeliveryPlan {
  /** IDs of the deliveries to redeliver, oldest first. */
  readonly redeliver: readonly number[];
  /** Number of other due deliveries, beyond the permitted number. */
  readonly postponed: number;
}

/** GitHub keeps deliveries for three days. */
const KEPT_MS = 3 * 24 * 3_600_000;
/**
 * Time between the last failure of an event and its redelivery, by the number of its deliveries
 * (ms). After the last one, the event is not redelivered. A receiver that is back gets it with the
 * first.
 */
const PAUSES_MS = [0, 60_000, 10 * 60_000, 3_600_000, 6 * 3_600_000, 24 * 3_600_000] as const;
/** Events that the receiver uses. */
const RECEIVED: ReadonlySet<string> = new Set(['workflow_job']);
/**
 * Statuses with which the receiver rejected the delivery: not JSON, too large, too old. It would
 * reject it again.
 */
const FINAL = [400, 413, 415, 422];

/**
 * Selects the failed deliveries to redeliver now. All deliveries of one event share a guid. If one
 * of them succeeded, the event has been received. Redelivery of each delivery is requested once; if
 * the redelivery fails too, it is another delivery.
 * @param asked - IDs of deliveries whose redelivery was already requested
 */
export function planRedelivery(
  deliveries: readonly ListedDelivery[],
  asked: Pick<ReadonlySet<number>, 'has'>,
  nowMs: number,
  max: number,
): RedeliveryPlan {
  const due: ListedDelivery[] = [];
  for (const ofOneEvent of Map.groupBy(deliveries, ({ guid }) => guid).values()) {
    const last = ofOneEvent.reduce((a, b) =>
      b.delivered_at > a.delivered_at || (b.delivered_at === a.delivered_at && b.id > a.id) ? b : a,
    );
    const pause = PAUSES_MS[ofOneEvent.length - 1];
    const arrived = ofOneEvent.some(({ status_code: status }) => status >= 200 && status < 400);
    const wanted =
      RECEIVED.has(last.event) && !FINAL.includes(last.status_code) && !asked.has(last.id);
    const age = nowMs - last.delivered_at;
    if (!arrived && wanted && pause !== undefined && age >= pause && age < KEPT_MS) due.push(last);
  }
  due.sort((a, b) => a.delivered_at - b.delivered_at || a.id - b.id);
  return {
    redeliver: due.slice(0, max).map(({ id }) => id),
    postponed: Math.max(0, due.length - max),
  };
}
