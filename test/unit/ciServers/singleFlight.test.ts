import { expect, test } from '@jest/globals';
import { SingleFlight } from '../../../activities/ciServers/singleFlight.ts';

/** Numbered calls that the test ends. */
function world() {
  const calls: PromiseWithResolvers<string>[] = [];
  const flight = new SingleFlight(async () => {
    const call = Promise.withResolvers<string>();
    calls.push(call);
    return await call.promise;
  });
  return { calls, flight };
}
const settled = async (): Promise<void> => await new Promise((resolve) => setImmediate(resolve));

test('join: all share the running call; the next one after it is another', async () => {
  const { calls, flight } = world();
  const both = [flight.run(), flight.run()];
  calls[0]?.resolve('first');
  expect(await Promise.all(both)).toEqual(['first', 'first']);
  const later = flight.run();
  calls[1]?.resolve('second');
  expect(await later).toBe('second');
  expect(calls).toHaveLength(2);
});

test('next: callers during a call share the one after it, whatever its result', async () => {
  const { calls, flight } = world();
  const first = flight.runFresh();
  const others = [flight.runFresh(), flight.runFresh()];
  await settled();
  expect(calls).toHaveLength(1);
  calls[0]?.reject(new Error('lost'));
  await expect(first).rejects.toThrow('lost');
  await settled();
  expect(calls).toHaveLength(2);
  const third = flight.runFresh();
  calls[1]?.resolve('second');
  expect(await Promise.all(others)).toEqual(['second', 'second']);
  await settled();
  calls[2]?.resolve('third');
  expect(await third).toBe('third');
});

test('an aborted caller stops waiting, and the call continues for the others', async () => {
  const { calls, flight } = world();
  const controller = new AbortController();
  const aborted = flight.run(controller.signal);
  const other = flight.run();
  controller.abort(new Error('cancelled'));
  await expect(aborted).rejects.toThrow('cancelled');
  calls[0]?.resolve('value');
  expect(await other).toBe('value');
  expect(calls).toHaveLength(1);
});

test('a failure is not cached', async () => {
  const { calls, flight } = world();
  const failing = flight.run();
  calls[0]?.reject(new Error('down'));
  await expect(failing).rejects.toThrow('down');
  const again = flight.run();
  calls[1]?.resolve('up');
  expect(await again).toBe('up');
});
