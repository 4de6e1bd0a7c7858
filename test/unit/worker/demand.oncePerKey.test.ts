import { expect, test } from '@jest/globals';
import { DeduplicatedCalls } from '../../../worker/webhook/deduplicatedCalls.ts';

interface Begun {
  readonly key: string;
  readonly end: (result: string) => void;
}

/** The started calls, which the test ends. */
function runs(max = 10): {
  run: (key: string) => Promise<{ result: string; repeated: boolean }>;
  begun: Begun[];
} {
  const once = new DeduplicatedCalls<string>(max, (result) => result === 'good');
  const begun: Begun[] = [];
  return {
    begun,
    run: async (key) =>
      await once.run(key, async () => {
        const { promise, resolve } = Promise.withResolvers<string>();
        begun.push({ key, end: resolve });
        return await promise;
      }),
  };
}

test.each(['good', 'bad'])(
  'two concurrent calls are one, and both get the result %s',
  async (result) => {
    const { run, begun } = runs();
    const both = [run('a'), run('a')];
    // By then each of them has reached its start.
    await new Promise(setImmediate);
    for (const { end } of begun) end(result);
    expect(await Promise.all(both)).toEqual([
      { result, repeated: false },
      { result, repeated: true },
    ]);
    expect(begun).toHaveLength(1);
  },
);

test('a bad result is retried, a good one is not', async () => {
  const { run, begun } = runs();
  const bad = run('a');
  begun[0]?.end('bad');
  await bad;
  const good = run('a');
  begun[1]?.end('good');
  await good;
  expect(await run('a')).toEqual({ result: 'good', repeated: true });
  expect(begun).toHaveLength(2);
});

test('a call that was forgotten among many, and fails, does not remove the next call with its key', async () => {
  const { run, begun } = runs(1);
  const [first, , second] = [run('a'), run('b'), run('a')];
  begun[0]?.end('bad');
  await first;
  const third = run('a');
  begun[2]?.end('good');
  expect(await Promise.all([second, third])).toEqual([
    { result: 'good', repeated: false },
    { result: 'good', repeated: true },
  ]);
  expect(begun.map(({ key }) => key)).toEqual(['a', 'b', 'a']);
});
