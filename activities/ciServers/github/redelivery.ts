import type { ListedDelivery } from './responses.ts';

/** What to do with the failed deliveries that were found. */
export interface RedeliveryPlan {
  /** Ids of deliveries to be sent again, the oldest first. */
  readonly redeliver: readonly number[];
  /** Others that are due, and beyond the number allowed. */
  readonly postponed: number;
}

/** GitHub keeps deliveries for three days. */
const KEPT_MS = 3 * 24 * 3_600_000;
/** How long after the last failure of an event it is sent again, by how often it was sent; after that never. A receiver that is back has been told by the first. */
const PAUSES_MS = [0, 60_000, 10 * 60_000, 3_600_000, 6 * 3_600_000, 24 * 3_600_000] as const;
/** What the receiver has a use for. */
const RECEIVED: ReadonlySet<string> = new Set(['workflow_job']);
/** The receiver did not want it: not JSON, too large, too old. It would not want it again. */
const FINAL = [400, 413, 415, 422];

/**
 * Which failed deliveries are to be sent again now. Those of one event share a guid: if one of them arrived, the event
 * has. Each delivery is asked for once; if what comes of it fails too, that is another delivery.
 * @param asked - ids that were asked for before
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
