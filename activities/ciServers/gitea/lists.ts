import type { z } from 'zod';
import type { GitHubApi, GitHubRequest } from '../github/api.ts';

/** Gitea's default maximum of a page. It cuts larger requests. */
const PAGE = 50;
/** Maximum pages of a list. A longer list is an error. */
const MAX_PAGES = 400;
/** Maximum times a list is read that changes its order meanwhile. */
const MAX_READS = 3;

/** One page of a list, and the number of entries of the whole list. */
interface Page<T> {
  readonly total: number;
  readonly items: readonly T[];
}

/** Entries of a list, and whether they are known to be all. */
export interface ReadList<T> {
  readonly items: T[];
  readonly total: number;
  readonly complete: boolean;
}

/**
 * Reads lists of Gitea, which have no Link header. Every page has the number of all entries.
 */
export class GiteaLists {
  readonly #api: GitHubApi;

  constructor(api: GitHubApi) {
    this.#api = api;
  }

  /**
   * Reads a list once.
   * @throws CiServerError of every kind but `busy`
   */
  async once<T extends z.ZodType<Page<{ readonly id: string }>>>(
    schema: T,
    request: GitHubRequest,
    signal?: AbortSignal,
  ): Promise<ReadList<z.output<T>['items'][number]>> {
    const found = new Map<string, z.output<T>['items'][number]>();
    let rows = 0;
    let first: number | undefined;
    for (let page = 1; page <= MAX_PAGES; page++) {
      const asked = { ...request, parameters: { ...request.parameters, limit: PAGE, page } };
      const answer = await this.#api.request(asked, signal);
      const { total, items } = this.#api.parse(schema, answer, asked);
      first ??= total;
      rows += items.length;
      for (const item of items) found.set(item.id, item);
      // An entry that leaves the list moves others to a page that was already read.
      if (rows >= total || items.length === 0)
        return {
          items: [...found.values()],
          total,
          complete: total >= first && found.size >= total,
        };
    }
    throw this.#api.toError('unavailable', request, 'the list does not end');
  }

  /**
   * Reads a whole list whose order may change meanwhile, as that of runners by their latest request.
   * @throws CiServerError of every kind but `busy`. An incomplete list is `unavailable`.
   */
  async whole<T extends z.ZodType<Page<{ readonly id: string }>>>(
    schema: T,
    request: GitHubRequest,
  ): Promise<z.output<T>['items'][number][]> {
    const found = new Map<string, z.output<T>['items'][number]>();
    for (let read = 0; read < MAX_READS; read++) {
      const { items, total } = await this.once(schema, request);
      for (const item of items) found.set(item.id, item);
      if (found.size >= total) return [...found.values()];
    }
    throw this.#api.toError('unavailable', request, 'the list changes while it is read');
  }
}
