/** The activities of a scale set's listener, with a scale set whose responses the test controls. */
import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Client } from '@temporalio/client';
import { MockActivityEnvironment } from '@temporalio/testing';
import { setTimeout as delay } from 'node:timers/promises';
import { DefaultLogger } from '@temporalio/worker';
import { UnknownCredentialError } from '../../../activities/ports/ciServer.ts';
import { CiServerError } from '../../../activities/ports/ciServerError.ts';
import type { ActivityPorts, ScaleSetActivity } from '../../../activities/ports/activityPorts.ts';
import { closeScaleSet } from '../../../activities/scaleSet/closeScaleSet.ts';
import { listen } from '../../../activities/scaleSet/listen.ts';
import type { ListenResult } from '../../../core/activities/index.ts';
import {
  SET_CAPACITY_MEMO,
  type ScaleSetListenerInput,
  type ScaleSetReport,
} from '../../../core/contract/index.ts';
import type { ScaleSetMessage, ScaleSetStatistics } from '../../../core/domain/scaleSet.ts';
import { FakeCompute } from '../../support/fakeCompute.ts';

const listener: ScaleSetListenerInput = {
  set: 'gpu',
  scope: { kind: 'organization', name: 'acme' },
  credential: 'default',
  group: 'default',
  labels: ['gpu'],
  name: 'gpu',
};
const NONE: ScaleSetStatistics = {
  available: 0,
  assigned: 0,
  running: 0,
  registeredRunners: 0,
  busyRunners: 0,
  idleRunners: 0,
};
const CURSOR = { sessionId: 's-1', openedAt: 7, lastMessageId: 0 };
const SCALE_SET = { id: 1, name: 'gpu', labels: ['gpu'], droppedLabels: [] };

let calls: string[];
let capacity: number;
/** Responds to polls, by their number from 1. */
let poll: (times: number, signal?: AbortSignal) => Promise<ScaleSetMessage | undefined>;
let open: (signal?: AbortSignal) => Promise<void>;
/** Error of every use of the credential. */
let credentialError: Error | undefined;
/** Last activity that was reported for the metrics. */
let last: ScaleSetActivity | undefined;
/** Status of the workflow of the set. */
let setStatus: string;
/** Problems in the reports to the set. */
let problems: (string | undefined)[];

beforeEach(() => {
  calls = [];
  credentialError = undefined;
  problems = [];
  last = undefined;
  setStatus = 'RUNNING';
  capacity = 0;
  open = async () => undefined;
  poll = async () => await Promise.reject(new CiServerError('unavailable', 'away'));
});

function ports(): ActivityPorts {
  let polls = 0;
  const session = {
    id: CURSOR.sessionId,
    statistics: NONE,
    next: async (_last: number, capacity: number, signal?: AbortSignal) => {
      calls.push(`next ${capacity}`);
      return await poll(++polls, signal);
    },
    acknowledge: async () => undefined,
    acquire: async (ids: number[]) => {
      calls.push(`acquire ${ids.join()}`);
      return ids;
    },
    close: async () => void calls.push('close'),
  };
  const scaleSets = {
    find: async () => SCALE_SET,
    ensure: async () => SCALE_SET,
    relabel: async () => SCALE_SET,
    openSession: async (_scope: object, _id: number, _owner: string, signal?: AbortSignal) => {
      calls.push('open');
      await open(signal);
      return session;
    },
    adoptSession: async () => session,
    remove: async () => void calls.push('remove'),
  };
  const ciServers = {
    get: () => {
      if (credentialError !== undefined) throw credentialError;
      return { scaleSets };
    },
  };
  const onScaleSet = (_set: string, activity: ScaleSetActivity): void => void (last = activity);
  return { ciServers, compute: new FakeCompute(), onScaleSet } as unknown as ActivityPorts;
}

const client = {
  withAbortSignal: async (_signal: AbortSignal, call: () => Promise<unknown>) => await call(),
  workflow: {
    getHandle: () => ({
      describe: async () => ({
        status: { name: setStatus },
        memo: { [SET_CAPACITY_MEMO]: capacity },
      }),
      signal: async (_signal: object, { problem }: ScaleSetReport) => void problems.push(problem),
    }),
  },
} as unknown as Client;

interface Attempt {
  readonly heartbeats: object[];
  readonly environment: MockActivityEnvironment;
}

function attempt(info: object = {}, workflowId = 'scale-set-gpu'): Attempt {
  const logger = new DefaultLogger('ERROR', () => undefined);
  const environment = new MockActivityEnvironment(
    {
      workflowExecution: { workflowId, runId: 'r' },
      heartbeatTimeoutMs: 15_000,
      currentAttemptScheduledTimestampMs: 1_234,
      ...info,
    },
    { client, logger },
  );
  const heartbeats: object[] = [];
  environment.on('heartbeat', (details: object) => heartbeats.push(details));
  return { heartbeats, environment };
}

const listenIn = async ({ environment }: Attempt): Promise<ListenResult> =>
  await environment.run(async () => await listen(ports(), { listener }));

describe('listen', () => {
  test('the delays of failed attempts grow until a poll has a response, even if the session opens', async () => {
    const failures = async (details: object): Promise<unknown> => {
      const it = attempt({ heartbeatDetails: details });
      await expect(listenIn(it)).rejects.toMatchObject({ type: 'CiServerUnavailable' });
      return it.heartbeats.at(-1);
    };
    expect(await failures({ cursor: CURSOR, failures: 3 })).toMatchObject({ failures: 4 });
    poll = async (times) => {
      if (times > 1) throw new CiServerError('unavailable', 'away');
      return undefined;
    };
    expect(await failures({ cursor: CURSOR, failures: 3 })).toMatchObject({ failures: 1 });
  });

  test('a poll that the set interrupts is followed by acquisitions with the new capacity', async () => {
    poll = async (times, signal) => {
      if (times === 1)
        return {
          id: 1,
          statistics: NONE,
          events: [1, 2, 3].map((requestId) => ({ kind: 'available', requestId })),
        };
      if (times > 2) throw new CiServerError('unavailable', 'away');
      capacity = 2;
      return await new Promise((_resolve, reject) => {
        signal?.addEventListener('abort', () => reject(signal.reason as Error));
      });
    };
    await expect(listenIn(attempt())).rejects.toMatchObject({ type: 'CiServerUnavailable' });
    expect(calls).toEqual(['open', 'next 0', 'next 0', 'acquire 1,2', 'next 2']);
  }, 20_000);

  test('the first heartbeat has the session, and the time of the Temporal server', async () => {
    open = async () => await delay(1_100);
    const it = attempt({ heartbeatTimeoutMs: 3_000 });
    await expect(listenIn(it)).rejects.toMatchObject({ type: 'CiServerUnavailable' });
    expect(it.heartbeats[0]).toEqual({
      cursor: { sessionId: CURSOR.sessionId, openedAt: 1_234, lastMessageId: 0 },
    });
  });

  describe('without its credential', () => {
    interface Failed {
      readonly details: object | undefined;
      readonly retryMs: unknown;
    }
    /** Fails, and returns the details for the next attempt. */
    const fail = async (message: string, details?: object): Promise<Failed> => {
      credentialError = new UnknownCredentialError(message);
      const it = attempt({ heartbeatDetails: details });
      const failure: unknown = await listenIn(it).catch((error: unknown) => error);
      return {
        details: it.heartbeats.at(-1),
        retryMs: (failure as { nextRetryDelay?: unknown }).nextRetryDelay,
      };
    };

    test('reports the problem once, and tries less often after a minute', async () => {
      const first = await fail('unknown');
      const second = await fail('unknown', first.details);
      expect(second).toEqual(first);
      expect(second.retryMs).toBe(5_000);
      const failingSince = Date.now() - 60_000;
      const later = await fail('unknown', { ...second.details, failingSince });
      expect(later).toMatchObject({ details: { failingSince }, retryMs: 60_000 });
      expect(problems).toEqual(['unknown']);
    });

    test('reports another problem, and an old one again', async () => {
      const first = await fail('first');
      const second = await fail('second', first.details);
      const reported = { problem: 'second', at: Date.now() - 6 * 60_000 };
      await fail('second', { ...second.details, reported });
      expect(problems).toEqual(['first', 'second', 'second']);
    });
  });

  test('reports a problem that has returned', async () => {
    const it = attempt({ heartbeatDetails: { reported: { problem: 'away', at: Date.now() } } });
    await expect(listenIn(it)).rejects.toMatchObject({ type: 'CiServerUnavailable' });
    expect(problems).toEqual([undefined, 'away']);
  });

  test('its part in the session is over at the end of the set', async () => {
    setStatus = 'COMPLETED';
    expect(await listenIn(attempt())).toEqual({ kind: 'ended', remove: true });
    expect(last).toEqual({ up: false, over: true });
  });

  test.each([
    ['its attempt has timed out', 'TIMED_OUT', true],
    ['its workflow has ended', 'NOT_FOUND', true],
    ['the worker shuts down', 'WORKER_SHUTDOWN', false],
  ])('if %s, its part in the session is over: %s', async (_what, reason, over) => {
    const it = attempt();
    poll = async (_times, signal) => {
      it.environment.cancel(reason as never);
      return await Promise.reject(signal?.reason as Error);
    };
    await expect(listenIn(it)).rejects.toThrow(reason);
    expect(last).toEqual({ up: false, over });
  });

  test('a failed attempt is not over', async () => {
    await expect(listenIn(attempt())).rejects.toMatchObject({ type: 'CiServerUnavailable' });
    expect(last).toEqual({ up: false, over: false });
  });

  test('a cancellation neither aborts the request for a session nor loses it', async () => {
    const it = attempt();
    let aborted: boolean | undefined;
    open = async (signal) => {
      it.environment.cancel('CANCELLED');
      aborted = signal?.aborted;
    };
    poll = async (_times, signal) => {
      signal?.throwIfAborted();
      return undefined;
    };
    expect(await listenIn(it)).toEqual({
      kind: 'continue',
      cursor: { sessionId: CURSOR.sessionId, openedAt: 1_234, lastMessageId: 0 },
    });
    expect(aborted).toBeUndefined();
    expect(calls).not.toContain('close');
  });
});

describe('closeScaleSet', () => {
  const close = async (it: Attempt, cursor?: typeof CURSOR, remove = true): Promise<void> =>
    await it.environment.run(
      async () => await closeScaleSet(ports(), { listener, remove, ...(cursor && { cursor }) }),
    );

  test('is allowed for the listener of the set only', async () => {
    await expect(close(attempt({}, 'scale-set-other'), CURSOR)).rejects.toMatchObject({
      type: 'InvalidInput',
    });
    expect(calls).toEqual([]);
  });

  test.each([
    ['with a session', CURSOR, true, ['close', 'remove']],
    ['with a session, keeping the scale set', CURSOR, false, ['close']],
    ['without a session', undefined, true, ['open', 'close', 'remove']],
  ])('%s', async (_what, cursor, remove, expected) => {
    await close(attempt(), cursor, remove);
    expect(calls).toEqual(expected);
  });

  test('removes nothing while another process has the session', async () => {
    open = async () => await Promise.reject(new CiServerError('conflict', 'held by another'));
    await close(attempt());
    expect(calls).toEqual(['open']);
  });

  test('sends heartbeats', async () => {
    const it = attempt({ heartbeatTimeoutMs: 30 });
    open = async () => await delay(200);
    await close(it);
    expect(it.heartbeats.length).toBeGreaterThan(0);
  });
});
