import { LRUCache } from 'lru-cache';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import type { Redelivered } from '../../ports.ts';
import type { Clock } from '../clock.ts';
import { deliveryListAnswer, type ListedDelivery } from './responses.ts';
import type { GitHubApi, GitHubRequest } from './api.ts';
import { planRedelivery } from './redelivery.ts';

const PAGE = 100;
/** Pages of one list: failures stay listed when they were sent again, for the three days that GitHub keeps them. */
const MAX_PAGES = 200;
/** Ids remembered as asked for: more than can be listed. */
const MAX_ASKED = 20_000;

/**
 * Deliveries of a GitHub App's webhook that failed, sent again.
 * https://docs.github.com/en/webhooks/using-webhooks/handling-failed-webhook-deliveries
 */
export class WebhookRedelivery {
  readonly #api: Pick<GitHubApi, 'requestAsApp' | 'parse'>;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #asked = new LRUCache<number, true>({ max: MAX_ASKED });

  constructor(api: Pick<GitHubApi, 'requestAsApp' | 'parse'>, clock: Pick<Clock, 'now'>) {
    this.#api = api;
    this.#clock = clock;
  }

  async redeliverFailed(
    { maxRedeliveries }: { maxRedeliveries: number },
    signal?: AbortSignal,
  ): Promise<Redelivered> {
    const now = this.#clock.now();
    const failures = await this.#list('failure', undefined, signal);
    const due = planRedelivery(failures, this.#asked, now, maxRedeliveries).redeliver;
    if (due.length === 0) return { redelivered: 0, postponed: 0 };
    // Who asked for it before may have been this process in an earlier life, or another: GitHub's own record tells what has arrived since.
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
      const request: GitHubRequest = {
        call: 'deliveries',
        route: 'POST /app/hook/deliveries/{delivery_id}/attempts',
        parameters: { delivery_id: id },
        subject: `delivery ${id}`,
      };
      await this.#api.requestAsApp(request, signal); // 404: it is too old by now
      this.#asked.set(id, true);
    }
    return { redelivered: redeliver.length, postponed };
  }

  /** Newest first, to the end of the list or until that time. A server that does not know the filter lists the others, too. */
  async #list(
    status: 'failure' | undefined,
    since = Number.NEGATIVE_INFINITY,
    signal?: AbortSignal,
  ): Promise<ListedDelivery[]> {
    const all: ListedDelivery[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < MAX_PAGES; page++) {
      const parameters = omitUndefined({ status, per_page: PAGE, cursor });
      const request: GitHubRequest = {
        call: 'deliveries',
        route: 'GET /app/hook/deliveries',
        parameters,
        subject: status === undefined ? 'deliveries' : 'failed deliveries',
      };
      const answer = await this.#api.requestAsApp(request, signal);
      const listed = this.#api.parse(deliveryListAnswer, answer, request);
      all.push(...listed);
      // What is no address names no page.
      cursor = URL.parse(answer.next ?? '')?.searchParams.get('cursor') ?? undefined;
      if (cursor === undefined || (listed.at(-1)?.delivered_at ?? since) < since) break;
    }
    return all;
  }
}
