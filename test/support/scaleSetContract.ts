import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { CiServer, Registration } from '../../activities/ports/ciServer.ts';
import type { ScaleSets } from '../../activities/ports/scaleSets.ts';
import type { RegisterRequest, Scope } from '../../core/domain/ciServer.ts';
import type { ScaleSetMessage, ScaleSetRequest } from '../../core/domain/scaleSet.ts';
import { ciServerError } from './ciServers.ts';

/** A server of scale sets for the tests of an adapter. */
export interface ScaleSetFixture {
  readonly server: CiServer;
  /** Queues a job for the scale set. */
  queueJob(scaleSet: number): Promise<void>;
  /** Lets the runner take an assigned job. */
  startJob(runner: Registration): Promise<{ finish(): Promise<void> }>;
  /** Invalidates the session's token. */
  expireToken(scaleSet: number): Promise<void>;
  /** Ends the session at the server. */
  evict(scaleSet: number): Promise<void>;
  /** Invalidates all tokens of the service. */
  expireTenantTokens(): Promise<void>;
  /** Sets the response to the next poll. */
  failNextPoll(how: 'limit' | 'error'): Promise<void>;
  /** Messages that were delivered and not acknowledged. */
  unacknowledged(scaleSet: number): Promise<number>;
  close(): Promise<void>;
}

const SCOPE: Scope = { kind: 'organization', name: 'acme' };
const MARK = 'holdfast-0123456789';
const WANTED: ScaleSetRequest = {
  scope: SCOPE,
  name: 'gpu',
  group: 'default',
  labels: ['gpu', 'large'],
  mark: MARK,
};
const runner = (name: string): RegisterRequest => ({
  scope: SCOPE,
  name,
  labels: ['gpu', 'large'],
  group: 'default',
  ephemeral: true,
  mode: 'jit',
  scaleSet: 'gpu',
});

/** The contract of servers of scale sets, and of the adapter. */
export function scaleSetContract(title: string, start: () => Promise<ScaleSetFixture>): void {
  describe(`scale set contract: ${title}`, () => {
    let fixture: ScaleSetFixture;
    let sets: ScaleSets;

    beforeEach(async () => {
      fixture = await start();
      if (fixture.server.scaleSets === undefined) throw new Error('there are no scale sets');
      sets = fixture.server.scaleSets;
    });
    afterEach(() => fixture.close());

    const kindOf = async (call: Promise<unknown>): Promise<string> =>
      (await ciServerError(call)).kind;

    /** Polls until a message contains such an event, and acknowledges the messages before it. */
    async function messageWith(
      session: Awaited<ReturnType<ScaleSets['openSession']>>,
      kind: string,
      capacity = 10,
    ): Promise<ScaleSetMessage> {
      for (let last = 0; ;) {
        const message = await session.next(last, capacity);
        if (message === undefined) continue;
        if (message.events.some((event) => event.kind === kind)) return message;
        await session.acknowledge(message.id);
        last = message.id;
      }
    }

    test('a scale set is created once, found again, and changed to other labels', async () => {
      const created = await sets.ensure(WANTED);
      const found = await sets.ensure(WANTED);
      const other = { ...WANTED, labels: ['gpu', 'small'] };
      // Another process may be using it: nothing changes before its session is open.
      expect((await sets.ensure(other)).labels).toEqual(created.labels);
      const changed = await sets.relabel(created, other);
      expect(created).toMatchObject({ name: 'gpu', droppedLabels: [] });
      expect(found).toEqual(created);
      expect(await sets.find(WANTED)).toMatchObject({ id: created.id, droppedLabels: ['large'] });
      expect(changed.id).toBe(created.id);
      expect(changed.labels.toSorted()).toEqual(['gpu', MARK, 'small'].toSorted());
    });

    test('a scale set of another system is adopted only if that is requested', async () => {
      await sets.ensure({ ...WANTED, labels: ['theirs'], mark: 'holdfast-9876543210' });
      expect(await kindOf(sets.ensure(WANTED))).toBe('name_taken');
      expect(await kindOf(sets.find(WANTED))).toBe('name_taken');
      expect(await sets.remove(WANTED)).toBe('absent');
      const request = { ...WANTED, adopt: true };
      const found = await sets.ensure(request);
      expect(found.labels).not.toContain(MARK);
      expect((await sets.relabel(found, request)).labels).toContain(MARK);
      expect(await sets.remove(WANTED)).toBe('removed');
    });

    test('a second removal finds nothing', async () => {
      await sets.ensure(WANTED);
      expect(await sets.remove(WANTED)).toBe('removed');
      expect(await sets.remove(WANTED)).toBe('absent');
      expect(await sets.find(WANTED)).toBeUndefined();
    });

    test('a second session conflicts until the first is closed', async () => {
      const { id } = await sets.ensure(WANTED);
      const session = await sets.openSession(SCOPE, id, 'first');
      expect(await kindOf(sets.openSession(SCOPE, id, 'second'))).toBe('conflict');
      await session.close();
      await expect(sets.openSession(SCOPE, id, 'second')).resolves.toBeDefined();
    });

    test('another process continues a session, with the messages that are not acknowledged', async () => {
      const { id } = await sets.ensure(WANTED);
      const first = await sets.openSession(SCOPE, id, 'first');
      const waiting = messageWith(first, 'available');
      await fixture.queueJob(id);
      const message = await waiting;
      const second = await sets.adoptSession(SCOPE, id, first.id);
      expect(second.id).toBe(first.id);
      expect(await second.next(0, 10)).toEqual(message);
    });

    test('a message is repeated until it is acknowledged, and repeated acknowledgements are ignored', async () => {
      const { id } = await sets.ensure(WANTED);
      const session = await sets.openSession(SCOPE, id, 'first');
      const waiting = messageWith(session, 'available');
      await fixture.queueJob(id);
      const message = await waiting;
      expect(await session.next(0, 10)).toEqual(message);
      await session.acknowledge(message.id);
      await session.acknowledge(message.id);
      expect(await fixture.unacknowledged(id)).toBe(0);
    });

    test('a job is acquired once, however often it is requested', async () => {
      const { id } = await sets.ensure(WANTED);
      const session = await sets.openSession(SCOPE, id, 'first');
      const waiting = messageWith(session, 'available');
      await fixture.queueJob(id);
      const { events } = await waiting;
      const ids = events.map(({ requestId }) => requestId);
      expect(await session.acquire(ids)).toEqual(ids);
      expect(await session.acquire(ids)).toEqual(ids);
      const { statistics } = await messageWith(session, 'assigned');
      expect(statistics).toMatchObject({ available: 0, assigned: 1, running: 0 });
    });

    test('a job starts and completes on the runner that has it, which cannot be removed', async () => {
      const { id } = await sets.ensure(WANTED);
      const session = await sets.openSession(SCOPE, id, 'first');
      const waiting = messageWith(session, 'available');
      await fixture.queueJob(id);
      await session.acquire((await waiting).events.map(({ requestId }) => requestId));
      const registration = await fixture.server.register(runner('r-1'));
      const { runnerId = '' } = registration;
      const job = await fixture.startJob(registration);
      const started = await messageWith(session, 'started');
      expect(started.events).toContainEqual(
        expect.objectContaining({ kind: 'started', runnerName: 'r-1' }),
      );
      expect(started.statistics).toMatchObject({ assigned: 1, running: 1, busyRunners: 1 });
      expect(await kindOf(sets.removeRunner(SCOPE, runnerId))).toBe('busy');
      await job.finish();
      expect((await messageWith(session, 'completed')).events).toContainEqual(
        expect.objectContaining({ kind: 'completed', runnerName: 'r-1', result: 'succeeded' }),
      );
      expect(await sets.removeRunner(SCOPE, runnerId)).toBe('absent');
    });

    test('the name of a runner is in use until it is removed', async () => {
      await sets.ensure(WANTED);
      const { runnerId, env } = await fixture.server.register(runner('r-1'));
      expect(env['ACTIONS_RUNNER_INPUT_JITCONFIG']).toBeTruthy();
      expect(await kindOf(fixture.server.register(runner('r-1')))).toBe('name_taken');
      expect(await sets.runnerId(SCOPE, 'r-1')).toBe(runnerId);
      expect(await sets.removeRunner(SCOPE, runnerId ?? '')).toBe('removed');
      expect(await sets.runnerId(SCOPE, 'r-1')).toBeUndefined();
      await expect(fixture.server.register(runner('r-1'))).resolves.toBeDefined();
    });

    test('a registration waits for a missing scale set', async () => {
      expect(await kindOf(fixture.server.register(runner('r-1')))).toBe('unavailable');
      await sets.ensure(WANTED);
      await fixture.server.register(runner('r-1'));
      await sets.remove(WANTED);
      expect(await kindOf(fixture.server.register(runner('r-2')))).toBe('unavailable');
      await sets.ensure(WANTED);
      await expect(fixture.server.register(runner('r-3'))).resolves.toBeDefined();
    });

    test('an expired token is renewed in a poll, an acknowledgement and an acquisition', async () => {
      const { id } = await sets.ensure(WANTED);
      const session = await sets.openSession(SCOPE, id, 'first');
      await fixture.queueJob(id);
      await fixture.expireToken(id);
      const message = await messageWith(session, 'available');
      await fixture.expireToken(id);
      expect(await session.acquire([message.events[0]?.requestId ?? 0])).toHaveLength(1);
      await fixture.expireToken(id);
      await session.acknowledge(message.id);
      expect(await fixture.unacknowledged(id)).toBe(0);
    });

    test('the tokens of the service are renewed', async () => {
      const { id } = await sets.ensure(WANTED);
      await fixture.expireTenantTokens();
      expect((await sets.ensure(WANTED)).id).toBe(id);
    });

    test('a session that the server has ended is lost for its owner', async () => {
      const { id } = await sets.ensure(WANTED);
      const session = await sets.openSession(SCOPE, id, 'first');
      await fixture.evict(id);
      expect(await kindOf(session.next(0, 1))).toBe('session_lost');
      expect(await kindOf(sets.adoptSession(SCOPE, id, session.id))).toBe('session_lost');
    });

    test('the session of a scale set that was removed is lost', async () => {
      const { id } = await sets.ensure(WANTED);
      const session = await sets.openSession(SCOPE, id, 'first');
      await sets.remove(WANTED);
      expect(await kindOf(session.next(0, 1))).toBe('session_lost');
      expect(await kindOf(sets.openSession(SCOPE, id, 'second'))).toBe('session_lost');
      expect((await sets.ensure(WANTED)).id).not.toBe(id);
    });

    test.each([
      ['limit', 'rate_limited'],
      ['error', 'unavailable'],
    ] as const)('a poll that gets a %s fails as %s, and the session stays', async (how, kind) => {
      const { id } = await sets.ensure(WANTED);
      const session = await sets.openSession(SCOPE, id, 'first');
      await fixture.queueJob(id);
      await fixture.failNextPoll(how);
      const error = await ciServerError(session.next(0, 1));
      expect(error.kind).toBe(kind);
      expect((error.retryAfterMs ?? 0) > 0).toBe(how === 'limit');
      await expect(messageWith(session, 'available')).resolves.toBeDefined();
    });
  });
}
