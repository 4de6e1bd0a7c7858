/** Lists of Gitea that change while they are read. */
import { expect, test } from '@jest/globals';
import type { z } from 'zod';
import { GiteaLists, type ListApi } from '../../../activities/ciServers/gitea/lists.ts';
import { runnerListAnswer } from '../../../activities/ciServers/gitea/responses.ts';
import { CiServerError } from '../../../activities/ports/ciServerError.ts';

const REQUEST = { call: 'list', route: 'GET /runners', parameters: {}, subject: 'acme' } as const;
const runner = (id: number): object => ({ id, name: `r-${id}`, status: 'idle', disabled: false });
const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

/** A server's list, in the server's order. */
class FakeList {
  ids: readonly number[];
  readonly pages: number[] = [];
  readonly #maxPage: number;
  readonly #beforePage: (list: FakeList) => void;

  /** @param beforePage - changes the list before each page except the first one */
  constructor(
    ids: readonly number[],
    beforePage: (list: FakeList) => void = () => {},
    maxPage = 50,
  ) {
    this.ids = ids;
    this.#beforePage = beforePage;
    this.#maxPage = maxPage;
  }

  get api(): ListApi {
    return {
      request: async ({ parameters }) => {
        const [page, limit] = [Number(parameters['page']), Number(parameters['limit'])];
        if (this.pages.length > 0) this.#beforePage(this);
        this.pages.push(page);
        const size = Math.min(limit, this.#maxPage);
        const runners = this.ids.slice((page - 1) * size, page * size).map(runner);
        return { status: 200, data: { total_count: this.ids.length, runners } };
      },
      parse: <T extends z.ZodType>(schema: T, { data }: { data: unknown }): z.output<T> =>
        schema.parse(data),
      toError: (kind, _request, reason) => new CiServerError(kind, reason),
    };
  }

  async read(): Promise<{ ids: number[]; complete: boolean }> {
    const { items, complete } = await new GiteaLists(this.api).read(runnerListAnswer, REQUEST);
    return { ids: items.map(({ id }) => Number(id)).toSorted((a, b) => a - b), complete };
  }
}

/** Calls a change once. */
const once = (change: (list: FakeList) => void): ((list: FakeList) => void) => {
  let isDone = false;
  return (list) => {
    if (!isDone) change(list);
    isDone = true;
  };
};

test.each([
  ['no page', 0, 50, [1]],
  ['a page', 50, 50, [1]],
  ['several pages', 120, 50, [1, 2, 3, 3, 2, 1]],
  ['pages of a lower maximum', 25, 10, [1, 2, 3, 3, 2, 1]],
])('%s of a list that does not change', async (_what, count, maxPage, pages) => {
  const list = new FakeList(upTo(count), undefined, maxPage);
  expect(await list.read()).toEqual({ ids: upTo(count), complete: true });
  expect(list.pages).toEqual(pages);
});

test('an entry that moves to a page that was already read is found', async () => {
  const toTop = once((list) => (list.ids = [100, ...list.ids.filter((id) => id !== 100)]));
  expect(await new FakeList(upTo(100), toTop).read()).toEqual({ ids: upTo(100), complete: true });
});

test('an entry that was removed while another was added, which moves a third one across a page boundary, is found', async () => {
  const list = new FakeList(
    upTo(100),
    once((changed) => (changed.ids = upTo(101).slice(1))),
  );
  expect(await list.read()).toEqual({ ids: upTo(101).slice(1), complete: true });
  expect(list.pages).toHaveLength(8);
});

test('a list that always changes is incomplete after three reads, and an error if it must be complete', async () => {
  const shrink = (list: FakeList): void => void (list.ids = list.ids.slice(1));
  const list = new FakeList(upTo(100), shrink);
  expect(await list.read()).toMatchObject({ complete: false });
  expect(list.pages).toHaveLength(12);
  const lists = new GiteaLists(new FakeList(upTo(100), shrink).api);
  const seen = await lists.seen(runnerListAnswer, REQUEST);
  expect(seen.complete).toBe(false);
  expect(() => lists.allOf(seen, REQUEST)).toThrow(CiServerError);
});

test('an entry that always exists is found, however the others change', async () => {
  let next = 1_000;
  const churn = (list: FakeList): void => {
    next++;
    list.ids = [next, ...list.ids.filter((id) => id === 77 || next - id < 150)];
  };
  for (const start of [60, 100, 300]) {
    const lists = new GiteaLists(new FakeList([...upTo(start), 77], churn).api);
    const { items } = await lists.seen(runnerListAnswer, REQUEST);
    expect(items.map(({ id }) => id)).toContain('77');
  }
});
