import { expect, test } from '@jest/globals';
import { LaneSlots } from '../../../worker/laneSlots.ts';
import { until } from '../../support/until.ts';

const never = new AbortController().signal;

interface Taken {
  count: number;
  readonly release: (() => void)[];
}

/** Asks for so many slots at once. */
function ask(slots: LaneSlots, wanted: number): Taken {
  const taken: Taken = { count: 0, release: [] };
  for (let i = 0; i < wanted; i++) {
    void slots.reserveSlot({}, never).then((permit) => {
      taken.count += 1;
      taken.release.push(() => slots.releaseSlot({ permit }));
    });
  }
  return taken;
}

test('no more slots at once than there are; each is handed on when it is released', async () => {
  const slots = new LaneSlots({ limit: 3, reachable: () => true });
  const taken = ask(slots, 5);
  await until('three', () => taken.count === 3);
  expect(taken.count).toBe(3);
  for (const release of taken.release) release();
  await until('all', () => taken.count === 5);
});

test('while the server is away one now and then, and all at once when it is back', async () => {
  let reachable = false;
  const spacingMs = 100;
  const slots = new LaneSlots({ limit: 100, reachable: () => reachable, spacingMs });
  const startedAt = performance.now();
  const taken = ask(slots, 100);
  await until('a few', () => taken.count >= 4);
  expect(taken.count).toBeLessThanOrEqual(1 + (performance.now() - startedAt) / spacingMs);
  reachable = true;
  await until('all', () => taken.count === 100);
  expect(performance.now() - startedAt).toBeLessThan(100 * spacingMs);
});

test('who is not waited for any more takes no slot', async () => {
  const slots = new LaneSlots({ limit: 1, reachable: () => true });
  const first = await slots.reserveSlot({}, never);
  const gone = new AbortController();
  const second = slots.reserveSlot({}, gone.signal);
  gone.abort(new Error('the worker shuts down'));
  const third = slots.reserveSlot({}, never);
  slots.releaseSlot({ permit: first });
  await expect(second).rejects.toThrow('the worker shuts down');
  expect(await third).toBeDefined();
});

test('one that waits for its turn is let go when the worker shuts down', async () => {
  const slots = new LaneSlots({ limit: 5, reachable: () => false, spacingMs: 60_000 });
  await slots.reserveSlot({}, never);
  const gone = new AbortController();
  const waiting = slots.reserveSlot({}, gone.signal);
  gone.abort();
  await expect(waiting).rejects.toThrow('abort');
});
