import { expect, test } from '@jest/globals';
import { DeduplicatedCalls } from '../../../worker/webhook/deduplicatedCalls.ts';

interface Begun {
  readonly key: string;
  readonly end: (result: string) => void;
}

/** What was begun, for the test to end. */
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
  'two that come together are one, and both learn that it was %s',
  async (result) => {
    const { run, begun } = runs();
    const both = [run('a'), run('a')];
    // Whatever either of them does before it begins, it has done by then.
    await new Promise(setImmediate);
    for (const { end } of begun) end(result);
    expect(await Promise.all(both)).toEqual([
      { result, repeated: false },
      { result, repeated: true },
    ]);
    expect(begun).toHaveLength(1);
  },
);

test('what was bad is tried again, what was good is not', async () => {
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

test('one that was forgotten among many, and ends badly, does not take the next of its key along', async () => {
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
