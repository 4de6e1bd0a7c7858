import { describe, expect, test } from '@jest/globals';
import {
  RateLimitGate,
  type GateLimits,
} from '../../../activities/ciServers/github/rateLimitGate.ts';
import { CiServerError } from '../../../activities/ports/ciServerError.ts';
import { ManualClock } from '../../support/manualClock.ts';

const GET = 'GET /orgs/{org}/actions/runners';
const POST = 'POST /orgs/{org}/actions/runners/generate-jitconfig';

function gateOf(limits: Partial<GateLimits> = {}): { gate: RateLimitGate; clock: ManualClock } {
  const clock = new ManualClock();
  return {
    clock,
    gate: new RateLimitGate(
      'acme',
      { maxInFlight: 90, pointsPerMinute: 900, ...limits },
      clock,
      () => 0,
    ),
  };
}

async function refusal(promise: Promise<unknown>): Promise<CiServerError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof CiServerError))
    throw new Error(`expected a CiServerError, got ${String(error)}`);
  return error;
}

describe('after a rate limit for one request', () => {
  test('the others are rejected with the rest of the wait, without being sent', async () => {
    const { gate, clock } = gateOf();
    const first = await gate.enter(GET, 1);
    expect(first.rateLimited(300_000)).toBe(300_000);
    await clock.advance(100_000);
    const error = await refusal(gate.enter(POST, 5));
    expect(error).toMatchObject({ kind: 'rate_limited', retryAfterMs: 200_000 });
    expect(error.message).toContain('"acme"');
  });

  test.each([-600_000, 600_000])(
    "the wait is as long as the server said, even if the machine's time is changed by %i ms in the meantime",
    async (byMs) => {
      const { gate, clock } = gateOf();
      expect((await gate.enter(GET, 1)).rateLimited(5_000)).toBe(5_000);
      clock.set(byMs);
      expect(await refusal(gate.enter(POST, 5))).toMatchObject({
        kind: 'rate_limited',
        retryAfterMs: 5_000,
      });
      await clock.advance(5_000);
      (await gate.enter(POST, 5)).completed();
    },
  );

  test('requests that wait for a slot are rejected immediately', async () => {
    const { gate } = gateOf({ maxInFlight: 1 });
    const first = await gate.enter(GET, 1);
    const second = refusal(gate.enter(GET, 1));
    first.rateLimited(60_000);
    expect(await second).toMatchObject({ kind: 'rate_limited', retryAfterMs: 60_000 });
  });

  test('returned waits are spread by up to a tenth', async () => {
    const clock = new ManualClock();
    const gate = new RateLimitGate(
      'acme',
      { maxInFlight: 90, pointsPerMinute: undefined },
      clock,
      () => 1,
    );
    expect((await gate.enter(GET, 1)).rateLimited(100_000)).toBe(110_000);
    expect(await refusal(gate.enter(GET, 1))).toMatchObject({ retryAfterMs: 110_000 });
  });

  test('after the wait one request is sent first; a second wait costs one request, not ninety', async () => {
    const { gate, clock } = gateOf({ maxInFlight: 90 });
    (await gate.enter(GET, 1)).rateLimited(60_000);
    await clock.advance(60_000);
    const probe = await gate.enter(GET, 1);
    const others = Array.from({ length: 20 }, () => refusal(gate.enter(GET, 1)));
    probe.rateLimited(60_000);
    for (const error of await Promise.all(others)) expect(error.kind).toBe('rate_limited');
  });

  test('after the wait a successful response releases the others', async () => {
    const { gate, clock } = gateOf({ maxInFlight: 3 });
    (await gate.enter(GET, 1)).rateLimited(60_000);
    await clock.advance(60_000);
    const probe = await gate.enter(GET, 1);
    const others = [gate.enter(GET, 1), gate.enter(GET, 1), gate.enter(GET, 1)];
    probe.completed();
    const passes = await Promise.all(others);
    expect(passes).toHaveLength(3);
    for (const pass of passes) pass.completed();
  });

  test('without a response to the first request after the wait the next one is sent first', async () => {
    const { gate, clock } = gateOf();
    (await gate.enter(GET, 1)).rateLimited(60_000);
    await clock.advance(60_000);
    const probe = await gate.enter(GET, 1);
    let passes = 0;
    const second = gate.enter(GET, 1).then((pass) => ((passes += 1), pass));
    const third = gate.enter(GET, 1).then((pass) => ((passes += 1), pass));
    probe.failed();
    const next = await second;
    expect(passes).toBe(1);
    next.completed();
    (await third).completed();
  });

  test.each([
    [1, 60_000],
    [2, 120_000],
    [3, 240_000],
    [4, 480_000],
    [5, 960_000],
    [6, 960_000],
  ])('a server without a duration: wait %i in a row is %i ms', async (nth, expected) => {
    const { gate, clock } = gateOf();
    let waited = 0;
    for (let i = 0; i < nth; i++) {
      await clock.advance(waited);
      waited = (await gate.enter(GET, 1)).rateLimited(undefined);
    }
    expect(waited).toBe(expected);
  });

  test('requests that were concurrent count as one wait', async () => {
    const { gate } = gateOf();
    const together = await Promise.all(Array.from({ length: 50 }, () => gate.enter(GET, 1)));
    expect(together.map((pass) => pass.rateLimited(undefined))).toEqual(together.map(() => 60_000));
  });

  test('a successful response resets the count, unless its request was sent before the wait', async () => {
    const { gate, clock } = gateOf();
    const [early, first] = [await gate.enter(GET, 1), await gate.enter(GET, 1)];
    first.rateLimited(undefined);
    early.completed();
    await clock.advance(60_000);
    expect((await gate.enter(GET, 1)).rateLimited(undefined)).toBe(120_000);
    await clock.advance(120_000);
    (await gate.enter(GET, 1)).completed();
    expect((await gate.enter(GET, 1)).rateLimited(undefined)).toBe(60_000);
  });
});

describe('pace per endpoint', () => {
  test('180 writes per minute; the next one gets its time', async () => {
    const { gate, clock } = gateOf();
    for (let i = 0; i < 180; i++) (await gate.enter(POST, 5)).completed();
    await clock.advance(20_000);
    expect(await refusal(gate.enter(POST, 5))).toMatchObject({
      kind: 'rate_limited',
      retryAfterMs: 41_000,
    });
    (await gate.enter(GET, 1)).completed(); // another endpoint has its own budget
  });

  test('a short wait happens here, one turn per request', async () => {
    const { gate, clock } = gateOf();
    for (let i = 0; i < 90; i++) (await gate.enter(POST, 5)).completed();
    await clock.advance(5_000);
    for (let i = 0; i < 90; i++) (await gate.enter(POST, 5)).completed();
    await clock.advance(51_000);
    let through = 0;
    const waiting = Array.from(
      { length: 90 },
      async () => ((await gate.enter(POST, 5)).completed(), (through += 1)),
    );
    await clock.advance(4_999);
    expect(through).toBe(0);
    await clock.advance(1);
    await Promise.all(waiting);
    expect(through).toBe(90);
  });

  test('disabled without a budget', async () => {
    const { gate } = gateOf({ pointsPerMinute: undefined });
    let passed = 0;
    for (; passed < 1000; passed++) (await gate.enter(POST, 5)).completed();
    expect(passed).toBe(1000);
  });
});

describe('slots', () => {
  test('a limited number of concurrent requests, in order', async () => {
    const { gate } = gateOf({ maxInFlight: 2 });
    const [a, b] = [await gate.enter(GET, 1), await gate.enter(GET, 1)];
    const order: number[] = [];
    const waiting = [1, 2, 3].map(async (n) => {
      const pass = await gate.enter(GET, 1);
      order.push(n);
      return pass;
    });
    a.completed();
    (await waiting[0])?.failed();
    (await waiting[1])?.completed();
    b.completed();
    await waiting[2];
    expect(order).toEqual([1, 2, 3]);
  });

  test('a request that would wait too long for a slot is rejected', async () => {
    const { gate, clock } = gateOf({ maxInFlight: 1 });
    const pass = await gate.enter(GET, 1);
    const second = refusal(gate.enter(GET, 1));
    await clock.advance(10_000);
    expect(await second).toMatchObject({ kind: 'rate_limited', retryAfterMs: 1000 });
    pass.completed();
    (await gate.enter(GET, 1)).completed(); // the one that left holds nothing
  });

  test("an aborted wait ends with the signal's reason and takes no slot", async () => {
    const { gate } = gateOf({ maxInFlight: 1 });
    const pass = await gate.enter(GET, 1);
    const abort = new AbortController();
    const second = gate.enter(GET, 1, abort.signal);
    abort.abort(new Error('cancelled'));
    await expect(second).rejects.toThrow('cancelled');
    pass.completed();
    (await gate.enter(GET, 1)).completed();
  });
});
