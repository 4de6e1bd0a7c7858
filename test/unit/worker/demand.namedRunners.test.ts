import { beforeEach, expect, test } from '@jest/globals';
import type { Client } from '@temporalio/client';
import { SEARCH_ATTRIBUTES } from '../../../core/contract/index.ts';
import { NamedRunners } from '../../../worker/demand/namedRunners.ts';
import { until } from '../../support/until.ts';

interface Listed {
  readonly name: string;
  readonly workflowId: string;
  readonly status: 'RUNNING' | 'COMPLETED';
}
let queries: string[];
/** What Temporal answers the next query. */
let answer: () => Promise<Listed[]>;
let runners: NamedRunners;

beforeEach(() => {
  [queries, answer] = [[], async () => []];
  async function* list({ query }: { query: string }): AsyncGenerator<object> {
    queries.push(query);
    for (const { name, workflowId, status } of await answer()) {
      yield { workflowId, status: { name: status }, typedSearchAttributes: { get: (key: unknown) => (key === SEARCH_ATTRIBUTES.name ? name : undefined) } };
    }
  }
  const client = { withDeadline: async (_deadline: number, run: () => Promise<unknown>) => await run(), workflow: { list } } as unknown as Client;
  runners = new NamedRunners(() => client, 'holdfast');
});

test('names that come while a query is under way go together in the next, and each learns of its own', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  answer = async () => (await promise, []);
  const first = runners.find('a-0');
  await until('the query', () => queries.length === 1);
  const more = Array.from({ length: 500 }, async (_, index) => await runners.find(`a-${index % 250}`));
  answer = async () => [{ name: 'a-7', workflowId: 'runner-7', status: 'RUNNING' }];
  resolve();
  expect(await first).toEqual([]);
  const found = await Promise.all(more);
  expect(found.flatMap((one, index) => (one.length > 0 ? [[index, one]] : []))).toEqual([7, 257].map((index) => [index, [{ workflowId: 'runner-7', running: true, set: undefined }]]));
  expect(queries.map((query) => query.match(/'a-\d+'/g)?.length)).toEqual([1, 200, 50]);
});

test('of a runner with earlier runs the one that runs counts, and it is told once', async () => {
  answer = async () => ['RUNNING', 'COMPLETED', 'COMPLETED'].map((status) => ({ name: 'a', workflowId: 'runner-a', status: status as Listed['status'] }));
  expect(await runners.find('a')).toEqual([{ workflowId: 'runner-a', running: true, set: undefined }]);
});

test('a query that fails is a failure of those who waited for it, and of nobody else', async () => {
  answer = async () => await Promise.reject(new Error('down'));
  await expect(Promise.all(['a', 'b'].map(async (name) => await runners.find(name)))).rejects.toThrow('down');
  answer = async () => [];
  expect(await runners.find('a')).toEqual([]);
});
