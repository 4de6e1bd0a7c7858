import { describe, expect, test } from '@jest/globals';
import type { z } from 'zod';
import { WebhookRedelivery } from '../../../activities/ciServers/github/deliveries.ts';
import type {
  RestResponse,
  RestRequest,
} from '../../../activities/ciServers/github/restRequest.ts';

const NOW = Date.parse('2026-03-01T12:00:00Z');
const PAGE = 100;

interface Sent {
  readonly id: number;
  readonly guid: string;
  readonly ago: number;
  readonly status_code: number;
}

/** An App's deliveries as GitHub lists them. Redeliveries succeed. */
class App {
  readonly sent: Sent[] = [];
  readonly asked: number[] = [];
  pages = 0;

  constructor(sent: readonly Sent[]) {
    this.sent.push(...sent);
  }

  parse<T extends z.ZodType>(schema: T, { data }: RestResponse): z.output<T> {
    return schema.parse(data);
  }

  async requestAsApp({ route, parameters }: RestRequest): Promise<RestResponse> {
    if (route.startsWith('POST')) {
      const id = Number(parameters['delivery_id']);
      this.asked.push(id);
      this.sent.push({
        id: 1_000_000 + id,
        guid: this.sent.find((one) => one.id === id)?.guid ?? '',
        ago: 0,
        status_code: 202,
      });
      return { status: 202, data: {} };
    }
    this.pages++;
    const all = this.sent
      .filter(({ status_code: code }) => parameters['status'] !== 'failure' || code >= 400)
      .toSorted((a, b) => a.ago - b.ago || b.id - a.id);
    const from = Number(parameters['cursor'] ?? 0);
    const data = all.slice(from, from + PAGE).map(({ ago, ...one }) => ({
      ...one,
      event: 'workflow_job',
      delivered_at: new Date(NOW - ago).toISOString(),
    }));
    return {
      status: 200,
      data,
      ...(from + PAGE < all.length
        ? { next: `https://api.github.com/app/hook/deliveries?cursor=${from + PAGE}` }
        : {}),
    };
  }
}

const failures = (count: number): Sent[] =>
  Array.from({ length: count }, (_none, index) => ({
    id: index + 1,
    guid: `g${index + 1}`,
    ago: (count - index) * 1_000,
    status_code: 503,
  }));
const process = (app: App): WebhookRedelivery => new WebhookRedelivery(app, { now: () => NOW });

describe('failed deliveries', () => {
  test('are all found, in any number: redelivered ones stay listed before them', async () => {
    const app = new App(failures(2_500));
    const one = process(app);
    let postponed = 1;
    for (let round = 0; round < 20 && postponed > 0; round++)
      ({ postponed } = await one.redeliverFailed({ maxRedeliveries: 150 }));
    expect(app.asked).toEqual(Array.from({ length: 2_500 }, (_none, index) => index + 1));
  });

  test('are redelivered once, also by another process or one that has just started', async () => {
    const app = new App(failures(300));
    await process(app).redeliverFailed({ maxRedeliveries: 150 });
    await process(app).redeliverFailed({ maxRedeliveries: 1_000 });
    expect(await process(app).redeliverFailed({ maxRedeliveries: 1_000 })).toEqual({
      redelivered: 0,
      postponed: 0,
    });
    expect(app.asked.toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: 300 }, (_none, index) => index + 1),
    );
  });

  test('cost one list if there are none; successful ones are not read', async () => {
    const app = new App(
      Array.from({ length: 5_000 }, (_none, index) => ({
        id: index + 1,
        guid: `g${index + 1}`,
        ago: index,
        status_code: 202,
      })),
    );
    await process(app).redeliverFailed({ maxRedeliveries: 150 });
    expect(app.pages).toBe(1);
    app.sent.push({ id: 9_000, guid: 'late', ago: 250, status_code: 503 });
    await process(app).redeliverFailed({ maxRedeliveries: 150 });
    expect([app.asked, app.pages]).toEqual([[9_000], 1 + 1 + 3]);
  });
});
