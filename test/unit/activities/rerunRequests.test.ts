/** Requests for a rerun and a force-cancel, as later attempts of their activities see them. */
import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Client } from '@temporalio/client';
import { MockActivityEnvironment } from '@temporalio/testing';
import type { ActivityPorts } from '../../../activities/ports/activityPorts.ts';
import { CiServerError } from '../../../activities/ports/ciServerError.ts';
import { runnerHash } from '../../../activities/compute/naming.ts';
import { forceCancelRun } from '../../../activities/rerun/forceCancelRun.ts';
import { requestRerun } from '../../../activities/rerun/requestRerun.ts';
import type { RequestRerunInput } from '../../../core/activities/index.ts';
import { RUNNER_WORKFLOW } from '../../../core/contract/index.ts';
import { FakeCiServer } from '../../support/fakeCiServer.ts';
import { FakeReruns } from '../../support/fakeReruns.ts';

const SCOPE = { kind: 'organization', name: 'acme' } as const;
const PARENT = { workflowId: 'runner', firstRunId: 'first' };
const NAME = `linux-${runnerHash(PARENT)}`;
const INPUT: RequestRerunInput = {
  scope: SCOPE,
  credential: 'default',
  runnerName: NAME,
  job: { id: '1', repository: 'acme/web' },
  perRun: 1,
  perDay: 10,
  recorded: false,
  lostAtMs: Date.now() - 61_000,
  forceCancelAfterMs: 60_000,
};
let ci: FakeCiServer;
let reruns: FakeReruns;

beforeEach(() => {
  ci = new FakeCiServer();
  reruns = new FakeReruns();
  ci.reruns = reruns;
  ci.connect(NAME, false);
  reruns.begin('1', NAME);
  reruns.evidence.set('1', 'none');
});

/** A client whose workflows are the calling one, a child of the runner's. */
const CLIENT = {
  withDeadline: async (_deadline: number, run: () => unknown) => await run(),
  withAbortSignal: async (_signal: AbortSignal, run: () => unknown) => await run(),
  workflow: {
    count: async () => ({ count: 0 }),
    getHandle: () => ({
      describe: async () => ({
        type: RUNNER_WORKFLOW,
        startTime: new Date(),
        raw: {
          workflowExecutionInfo: {
            firstRunId: PARENT.firstRunId,
            parentExecution: { workflowId: PARENT.workflowId, runId: 'run' },
          },
        },
      }),
    }),
  },
} as unknown as Client;

/** Runs attempts until one succeeds. Each begins with the heartbeat details of the previous one. */
async function attempts<T>(
  activity: (ports: ActivityPorts, input: RequestRerunInput) => Promise<T>,
  killedAfter = 0,
): Promise<T> {
  let details: unknown;
  for (let attempt = 1 + killedAfter; ; attempt++) {
    const environment = new MockActivityEnvironment(
      { attempt, heartbeatDetails: details },
      { client: CLIENT },
    );
    environment.on('heartbeat', (latest) => (details = latest));
    const ports = { ciServers: ci } as unknown as ActivityPorts;
    const run = async (): Promise<T> => await activity(ports, INPUT);
    try {
      return await environment.run<[], T, typeof run>(run);
    } catch (error) {
      if (attempt > 3) throw error;
    }
  }
}

const noAnswer = (): CiServerError => new CiServerError('unavailable', 'no answer');

describe('a force-cancel', () => {
  test('is sent once', async () => {
    expect(await attempts(forceCancelRun)).toEqual({ sent: true });
    expect(reruns.forceCancelled).toEqual(['1']);
  });

  test('counts as sent if its response was lost', async () => {
    reruns.lostResponses.push(noAnswer());
    expect(await attempts(forceCancelRun)).toEqual({ sent: true });
    expect(reruns.forceCancelled).toEqual(['1']);
  });

  test('may have been sent by an attempt whose worker was killed', async () => {
    reruns.end('1', 'cancelled');
    expect(await attempts(forceCancelRun, 1)).toEqual({ sent: true });
  });

  test('was not sent by an attempt that failed before the request', async () => {
    ci.script.push({ method: 'find', answer: noAnswer() });
    // Meanwhile a newer push has cancelled the run.
    ci.beforeFind = () => reruns.end('1', 'cancelled');
    expect(await attempts(forceCancelRun)).toEqual({ sent: false });
    expect(reruns.forceCancelled).toEqual([]);
  });
});

describe('a rerun', () => {
  beforeEach(() => {
    reruns.end('1', 'failure');
    reruns.evidence.set('1', 'lost');
  });
  const RERUN = { kind: 'rerun', attempt: 2 };
  /** Another client reruns the job. */
  const runAgain = (): void =>
    reruns.end('1', 'failure', { latestAttempt: 2, rerunAttempt: 2, runEnded: false });

  test('is requested once', async () => {
    expect(await attempts(requestRerun)).toEqual(RERUN);
    expect(reruns.requested).toEqual(['1']);
  });

  test('counts as requested if its response was lost', async () => {
    reruns.lostResponses.push(noAnswer());
    expect(await attempts(requestRerun)).toEqual(RERUN);
    expect(reruns.requested).toEqual(['1']);
  });

  test('may have been requested by an attempt whose worker was killed', async () => {
    runAgain();
    expect(await attempts(requestRerun, 1)).toEqual(RERUN);
  });

  test.each([
    ['before the job was read', () => void reruns.readFailures.push(noAnswer())],
    ['by a rejection', () => void reruns.failures.push(new CiServerError('busy', 'locked'))],
  ])('was not requested by an attempt that failed %s', async (_when, fail) => {
    fail();
    reruns.afterFailure = runAgain;
    expect(await attempts(requestRerun)).toEqual({ kind: 'skipped', reason: 'already_rerun' });
    expect(reruns.requested).toEqual([]);
  });

  test('is requested by the next attempt if none has sent a request', async () => {
    reruns.readFailures.push(noAnswer());
    expect(await attempts(requestRerun)).toEqual(RERUN);
    expect(reruns.requested).toEqual(['1']);
  });
});
