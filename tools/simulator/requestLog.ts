import type { RecordedRequest, RequestCounts } from './types.ts';

/** How many requests are kept one by one; the counters cover all. */
const KEPT = 20_000;

/** Counts the requests to the REST API. */
export class RequestLog {
  #requests: RecordedRequest[] = [];
  #counts: RequestCounts = { total: 0, byEndpoint: {}, byStatus: {} };

  add(request: RecordedRequest): void {
    this.#requests.push(request);
    if (this.#requests.length > KEPT) this.#requests.splice(0, KEPT / 10);
    const byStatus = `${request.endpoint} ${request.status}`;
    this.#counts.total++;
    this.#counts.byEndpoint[request.endpoint] =
      (this.#counts.byEndpoint[request.endpoint] ?? 0) + 1;
    this.#counts.byStatus[byStatus] = (this.#counts.byStatus[byStatus] ?? 0) + 1;
  }

  counts(): RequestCounts {
    return structuredClone(this.#counts);
  }

  /** The latest requests, the oldest first. */
  list(): RecordedRequest[] {
    return [...this.#requests];
  }

  reset(): void {
    this.#requests = [];
    this.#counts = { total: 0, byEndpoint: {}, byStatus: {} };
  }
}
