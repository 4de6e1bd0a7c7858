import { LRUCache } from 'lru-cache';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import type { Redelivered } from '../../ports/ciServer.ts';
import type { Clock } from '../clock.ts';
import { deliveryListAnswer, type ListedDelivery } from './responses.ts';
import type { RestApi } from './api.ts';
import type { RestRequest } from './restRequest.ts';
import { planRedelivery } from './redelivery.ts';

const PAGE = 100;
/**
 * Maximum pages of one list. Failures stay in the list after they were redelivered, for the three
 * days that GitHub keeps them.
 */
const MAX_PAGES = 200;
/** Maximum number of delivery IDs remembered as requested. More than can be listed. */
const MAX_ASKED = 20_000;

/**
 * Requests redelivery of failed webhook deliveries of a GitHub App.
 * https://docs.github.com/en/webhooks/using-webhooks/handling-failed-webhook-deliveries
 */
export class WebhookRedelivery {
  readonly #api: Pick<RestApi, 'requestAsApp' | 'parse'>;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #asked = new LRUCache<number, true>({ max: MAX_ASKED });

  constructor(api: Pick<RestApi, 'requestAsApp' | 'parse'>, clock: Pick<Clock, 'now'>) {
    this.#api = api;
    this.#clock = clock;
  }

  /** Requests the redelivery of failed deliveries that are due, once for each. */
  async redeliverFailed(
    { maxRedeliveries }: { maxRedeliveries: number },
    signal?: AbortSignal,
  ): Promise<Redelivered> {
    const now = this.#clock.now();
    const failures = await this.#list('failure', undefined, signal);
    const due = planRedelivery(failures, this.#asked, now, maxRedeliveries).redeliver;
    if (due.length === 0) return { redelivered: 0, postponed: 0 };
    // Another process may have requested the redelivery before, or this one before a restart.
    // GitHub's own list shows what has been delivered since.
    const byId = new Map(failures.map((delivery) => [delivery.id, delivery]));
    const since = Math.min(...due.map((id) => byId.get(id)?.delivered_at ?? now));
    for (const delivery of await this.#list(undefined, since, signal))
      byId.set(delivery.id, delivery);
    const { redeliver, postponed } = planRedelivery(
      [...byId.values()],
      this.#asked,
      now,
      maxRedeliveries,
    );
    for (const id of redeliver) {
      const request: RestRequest = {
        call: 'deliveries',
        route: 'POST /app/hook/deliveries/{delivery_id}/attempts',
        parameters: { delivery_id: id },
        subject: `delivery ${id}`,
      };
      await this.#api.requestAsApp(request, signal); // 404: the delivery is too old by now
      this.#asked.set(id, true);
    }
    return { redelivered: redeliver.length, postponed };
  }

  /**
   * Returns the deliveries, newest first, to the end of the list or back to `since` (ms since the
   * epoch). A server that does not support the filter returns the other deliveries too.
   */
  async #list(
    status: 'failure' | undefined,
    since = Number.NEGATIVE_INFINITY,
    signal?: AbortSignal,
  ): Promise<ListedDelivery[]> {
    const all: ListedDelivery[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < MAX_PAGES; page++) {
      const parameters = omitUndefined({ status, per_page: PAGE, cursor });
      const request: RestRequest = {
        call: 'deliveries',
        route: 'GET /app/hook/deliveries',
        parameters,
        subject: status === undefined ? 'deliveries' : 'failed deliveries',
      };
      const answer = await this.#api.requestAsApp(request, signal);
      const listed = this.#api.parse(deliveryListAnswer, answer, request);
      all.push(...listed);
      // A link that is not a valid URL does not refer to a page.
      cursor = URL.parse(answer.next ?? '')?.searchParams.get('cursor') ?? undefined;
      if (cursor === undefined || (listed.at(-1)?.delivered_at ?? since) < since) break;
    }
    return all;
  }
}
