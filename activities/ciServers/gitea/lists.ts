import type { z } from 'zod';
import type { RestApi } from '../github/api.ts';
import type { RestRequest } from '../github/restRequest.ts';

/** Gitea's default maximum of a page. It cuts larger requests. */
const PAGE = 50;
/** Maximum pages of a list. A longer list is an error. */
const MAX_PAGES = 400;
/** Maximum times a list is read that changes meanwhile. */
const MAX_READS = 3;

/** One page of a list, and the number of entries of the whole list. */
interface Page<T> {
  readonly total: number;
  readonly items: readonly T[];
}

/** Entries of a list, and whether they are known to be all. */
export interface ReadList<T> {
  readonly items: T[];
  readonly complete: boolean;
}

type Schema = z.ZodType<Page<{ readonly id: string }>>;
type Item<T extends Schema> = z.output<T>['items'][number];

/** Sends requests and parses their answers. */
export type ListApi = Pick<RestApi, 'request' | 'parse' | 'toError'>;

/**
 * Reads lists of Gitea, which have no Link header. Every page has the number of all entries.
 *
 * Gitea pages by position, and the order changes: runners are ordered by their latest request, jobs
 * by nothing. An entry that leaves the list moves the others too. So an entry may move to a page that
 * was already read. A list of several pages is therefore read forwards and then backwards. It is
 * complete if both passes together have as many entries as each page has reported. An entry that left
 * while another one came is one too many.
 */
export class GiteaLists {
  readonly #api: ListApi;

  constructor(api: ListApi) {
    this.#api = api;
  }

  /**
   * Reads a list, and again if it changes meanwhile, but at most three times.
   * @returns the entries of the last read
   * @throws CiServerError of every kind but `busy`
   */
  async read<T extends Schema>(schema: T, request: RestRequest): Promise<ReadList<Item<T>>> {
    for (let reads = 1; ; reads++) {
      const list = await this.#once(schema, request);
      if (list.complete || reads === MAX_READS) return list;
    }
  }

  /**
   * Reads a list, and again if it changes meanwhile, but at most three times. A busy server has
   * changes in every read: with 300 runners that each run a job a minute, most reads are incomplete.
   * @returns every entry of all reads. An entry that was in the list all the time is missing only if
   * each pass of each read missed it
   * @throws CiServerError of every kind but `busy`
   */
  async seen<T extends Schema>(schema: T, request: RestRequest): Promise<ReadList<Item<T>>> {
    const seen = new Map<string, Item<T>>();
    for (let reads = 1; ; reads++) {
      const { items, complete } = await this.#once(schema, request);
      if (complete) return { items, complete };
      for (const item of items) seen.set(item.id, item);
      if (reads === MAX_READS) return { items: [...seen.values()], complete };
    }
  }

  /**
   * Returns the entries of a complete list.
   * @throws CiServerError `unavailable` if the list is incomplete
   */
  allOf<T>({ items, complete }: ReadList<T>, request: RestRequest): T[] {
    if (complete) return items;
    throw this.#api.toError('unavailable', request, 'the list changes while it is read');
  }

  async #once<T extends Schema>(schema: T, request: RestRequest): Promise<ReadList<Item<T>>> {
    const found = new Map<string, Item<T>>();
    const totals = new Set<number>();
    const readPage = async (page: number): Promise<number> => {
      const asked = { ...request, parameters: { ...request.parameters, limit: PAGE, page } };
      const answer = await this.#api.request(asked);
      const { total, items } = this.#api.parse(schema, answer, asked);
      totals.add(total);
      for (const item of items) found.set(item.id, item);
      return total;
    };
    const total = await readPage(1);
    const isPaged = total > found.size;
    // A server may have a lower maximum of a page.
    const pages = isPaged ? Math.ceil(total / Math.max(1, found.size)) : 1;
    if (pages > MAX_PAGES) throw this.#api.toError('unavailable', request, 'the list is too long');
    for (let page = 2; page <= pages; page++) await readPage(page);
    for (let page = pages; isPaged && page >= 1; page--) await readPage(page);
    return { items: [...found.values()], complete: totals.size === 1 && found.size === total };
  }
}
