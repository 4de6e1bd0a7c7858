import { LRUCache } from 'lru-cache';
import { defined } from '../../../core/defined.ts';
import type { Redelivered } from '../../ports.ts';
import type { Clock } from '../clock.ts';
import { deliveryListAnswer, type ListedDelivery } from './answers.ts';
import type { GitHubApi, GitHubRequest } from './api.ts';
import { planRedelivery } from './redelivery.ts';

const PAGE = 100;
/** Pages of failures looked at in one round; what is beyond comes when these have arrived, or are too old. */
const MAX_PAGES = 10;
/** Ids remembered as asked for: more than can be listed. */
const MAX_ASKED = 20_000;

/**
 * Deliveries of a GitHub App's webhook that failed, sent again.
 * https://docs.github.com/en/webhooks/using-webhooks/handling-failed-webhook-deliveries
 */
export class Deliveries {
  readonly #api: GitHubApi;
  readonly #clock: Clock;
  readonly #asked = new LRUCache<number, true>({ max: MAX_ASKED });

  constructor(api: GitHubApi, clock: Clock) {
    this.#api = api;
    this.#clock = clock;
  }

  async redeliverFailed({ maxRedeliveries }: { maxRedeliveries: number }, signal?: AbortSignal): Promise<Redelivered> {
    const { redeliver, left } = planRedelivery(await this.#failures(signal), this.#asked, this.#clock.now(), maxRedeliveries);
    for (const id of redeliver) {
      const request: GitHubRequest = { call: 'deliveries', route: 'POST /app/hook/deliveries/{delivery_id}/attempts', parameters: { delivery_id: id }, about: `delivery ${id}` };
      await this.#api.requestAsApp(request, signal); // 404: it is too old by now
      this.#asked.set(id, true);
    }
    return { redelivered: redeliver.length, left };
  }

  /** Newest first. A server that does not know the filter lists the others, too. */
  async #failures(signal?: AbortSignal): Promise<ListedDelivery[]> {
    const all: ListedDelivery[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < MAX_PAGES; page++) {
      const parameters = defined({ status: 'failure', per_page: PAGE, cursor });
      const request: GitHubRequest = { call: 'deliveries', route: 'GET /app/hook/deliveries', parameters, about: 'failed deliveries' };
      const answer = await this.#api.requestAsApp(request, signal);
      all.push(...this.#api.parse(deliveryListAnswer, answer, request));
      // What is no address names no page.
      cursor = URL.parse(answer.next ?? '')?.searchParams.get('cursor') ?? undefined;
      if (cursor === undefined) break;
    }
    return all;
  }
}
