import { expect, test } from '@jest/globals';
import { GatedSlotSupplier } from '../../../worker/plugin/gatedSlotSupplier.ts';
import { ManualClock } from '../../support/manualClock.ts';
import { until } from '../../support/until.ts';

const never = new AbortController().signal;

interface Taken {
  count: number;
  readonly release: (() => void)[];
}

/** Requests this many slots at once. */
function ask(slots: GatedSlotSupplier, wanted: number): Taken {
  const taken: Taken = { count: 0, release: [] };
  for (let i = 0; i < wanted; i++) {
    void slots.reserveSlot({}, never).then((permit) => {
      taken.count += 1;
      taken.release.push(() => slots.releaseSlot({ permit }));
    });
  }
  return taken;
}

test('at most the available slots are used; a released one goes to the next waiter', async () => {
  const slots = new GatedSlotSupplier({ limit: 3, reachable: () => true });
  const taken = ask(slots, 5);
  await until('three', () => taken.count === 3);
  expect(taken.count).toBe(3);
  for (const release of taken.release) release();
  await until('all', () => taken.count === 5);
});

test('an hour without the server causes five attempts a second; when it is back, all continue at once', async () => {
  let reachable = false;
  const clock = new ManualClock();
  const slots = new GatedSlotSupplier({ limit: 100, reachable: () => reachable, clock });
  let tries = 0;
  // Like a worker's ten polls, each of which gets an activity at once, so there are always more.
  const poll = async (): Promise<void> => {
    while (!reachable) {
      const permit = await slots.reserveSlot({}, new AbortController().signal);
      tries += 1;
      slots.releaseSlot({ permit });
    }
  };
  const polls = Array.from({ length: 10 }, poll);
  for (let tick = 0; tick < 5 * 3_600; tick++) await clock.advance(200);
  expect(tries).toBeGreaterThan(1_000);
  expect(tries).toBeLessThanOrEqual(5 * 3_600 + 1);

  reachable = true;
  await clock.advance(200);
  await Promise.all(polls);
  const taken = ask(slots, 100);
  await until('all', () => taken.count === 100);
}, 30_000);

test('a cancelled waiter takes no slot', async () => {
  const slots = new GatedSlotSupplier({ limit: 1, reachable: () => true });
  const first = await slots.reserveSlot({}, never);
  const aborted = new AbortController();
  const second = slots.reserveSlot({}, aborted.signal);
  aborted.abort(new Error('the worker shuts down'));
  const third = slots.reserveSlot({}, never);
  slots.releaseSlot({ permit: first });
  await expect(second).rejects.toThrow('the worker shuts down');
  expect(await third).toBeDefined();
});

test('a waiter is released when the worker shuts down', async () => {
  const slots = new GatedSlotSupplier({
    limit: 5,
    reachable: () => false,
    clock: new ManualClock(),
  });
  await slots.reserveSlot({}, never);
  const aborted = new AbortController();
  const waiting = slots.reserveSlot({}, aborted.signal);
  aborted.abort();
  await expect(waiting).rejects.toThrow('abort');
});
