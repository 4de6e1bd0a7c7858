import { expect, test } from '@jest/globals';
import { CircuitBreaker } from '../../../activities/shared/circuitBreaker.ts';
import { ManualClock } from '../../support/manualClock.ts';

function breakerOf(): { breaker: CircuitBreaker; clock: ManualClock } {
  const clock = new ManualClock();
  return { clock, breaker: new CircuitBreaker(clock, (why) => new Error(why)) };
}

/** A circuit breaker of a server that has just stopped responding. */
async function broken(): Promise<{ breaker: CircuitBreaker; clock: ManualClock }> {
  const { breaker, clock } = breakerOf();
  for (let failures = 0; failures < 2; failures++) (await breaker.enter()).failed('refused');
  return { breaker, clock };
}

test('one failure among responses is not an outage', async () => {
  const { breaker } = breakerOf();
  for (let i = 0; i < 20; i++) {
    (await breaker.enter()).failed('502');
    (await breaker.enter()).answered();
  }
  expect(breaker.closed).toBe(true);
});

test('two consecutive failures are an outage', async () => {
  const { breaker } = await broken();
  expect(breaker.closed).toBe(false);
});

test('an hour of outage with a thousand waiting requests costs one request every two seconds', async () => {
  const { breaker, clock } = await broken();
  const start = clock.now();
  const sentAt: number[] = [];
  let turnedAway = 0;
  const come = async (): Promise<void> => {
    try {
      const trial = await breaker.enter();
      sentAt.push(clock.now() - start);
      trial.failed('refused');
    } catch {
      turnedAway += 1;
    }
  };
  const coming = Array.from({ length: 1_000 }, come);
  for (let s = 0; s < 3_600; s += 1) {
    coming.push(come());
    await clock.advance(1_000);
  }
  await Promise.all([...coming, clock.advance(10_000)]);
  expect(sentAt.slice(0, 5)).toEqual([0, 1_000, 3_000, 5_000, 7_000]);
  expect(sentAt.length).toBeLessThanOrEqual(3_600 / 2 + 3);
  expect(sentAt.length + turnedAway).toBe(4_600);
}, 30_000);

test('the first response releases all waiting requests', async () => {
  const { breaker, clock } = await broken();
  const probe = await breaker.enter();
  const waiting = Array.from({ length: 50 }, async () => await breaker.enter());
  await clock.advance(500);
  probe.answered();
  await expect(Promise.all(waiting)).resolves.toHaveLength(50);
  expect(breaker.closed).toBe(true);
});

test('a request that waits longer than a probe is rejected', async () => {
  const { breaker, clock } = await broken();
  for (const pauseMs of [1_000, 2_000]) {
    (await breaker.enter()).failed('refused');
    await clock.advance(pauseMs);
  }
  (await breaker.enter()).failed('still refused');
  const waiting = Promise.allSettled([breaker.enter(), breaker.enter()]);
  await clock.advance(2_000);
  await clock.advance(500);
  // One of them is the next probe.
  const refused = {
    status: 'rejected',
    reason: new Error(
      'no answer since 2026-03-01T12:00:00.000Z (still refused); one request at a time finds out when it is back',
    ),
  };
  expect(await waiting).toEqual([expect.objectContaining({ status: 'fulfilled' }), refused]);
});

test('a probe without a response does not delay the next one', async () => {
  const { breaker, clock } = await broken();
  const silent = await breaker.enter();
  const next = breaker.enter();
  await clock.advance(1_000);
  (await next).answered();
  expect(breaker.closed).toBe(true);
  // The result of the first request is no evidence about a server that has responded since.
  silent.failed('no answer in time');
  (await breaker.enter()).failed('502');
  expect(breaker.closed).toBe(true);
});

test('a response to a request from before the outage does not end it', async () => {
  const { breaker } = breakerOf();
  const early = await breaker.enter();
  for (let failures = 0; failures < 2; failures++) (await breaker.enter()).failed('refused');
  early.answered();
  expect(breaker.closed).toBe(false);
});

test('a probe that was not sent passes its turn on', async () => {
  const { breaker } = await broken();
  (await breaker.enter()).abandoned();
  (await breaker.enter()).answered();
  expect(breaker.closed).toBe(true);
});

test('an aborted request stops waiting', async () => {
  const { breaker } = await broken();
  await breaker.enter();
  const abort = new AbortController();
  const waiting = breaker.enter(abort.signal);
  abort.abort(new Error('worker shuts down'));
  await expect(waiting).rejects.toThrow('worker shuts down');
  await expect(breaker.enter(abort.signal)).rejects.toThrow('worker shuts down');
});
