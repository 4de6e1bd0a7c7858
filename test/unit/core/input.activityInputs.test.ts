/** Inputs of activities are untrusted: each field that becomes a path, a name or a query is checked, and the error names the field. */
import { describe, expect, test } from '@jest/globals';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { createActivities } from '../../../activities/index.ts';
import type { ActivityPorts } from '../../../activities/ports/activityPorts.ts';
import type { HoldfastActivities } from '../../../core/activities/index.ts';
import {
  ACTIVITY_INPUTS,
  activityInputErrors,
  type CheckedActivity,
} from '../../../core/input/activityInputs.ts';
import { FakeCiServer } from '../../support/fakeCiServer.ts';
import { FakeCompute } from '../../support/fakeCompute.ts';

const quietly = (): MockActivityEnvironment =>
  new MockActivityEnvironment({}, { logger: new DefaultLogger('ERROR', () => undefined) });

const identity = { workflowId: 'test', firstRunId: 'r', attempt: 1 };
const location = { compute: 'process', cluster: 'memory', installation: 'test' };
const inNamespace = { compute: 'kubernetes', cluster: 'c', installation: 'i', namespace: 'ci' };
const pod = { name: 'p', uid: 'u' };
const scope = { kind: 'organization', name: 'acme' };
const runner = { name: 'linux-0123456789', id: '7' };
const claims = [{ name: 'cache', mountPath: '/c' }];
const ended = { kind: 'ended', workflowId: 'test', runnerName: 'r' };

const LISTENER = {
  set: 's',
  scope: { kind: 'organization', name: 'acme' },
  credential: 'default',
  group: 'default',
  labels: ['gpu'],
  name: 'gpu',
} as const;
const job = { id: '42', repository: 'acme/web' };
const lost = { scope, credential: 'default', runnerName: 'linux-0123456789' };

const SOUND = {
  admitRunner: { input: {}, workflowId: 'test', firstRunId: 'r' },
  admitJob: { input: {}, workflowId: 'test', runId: 'r' },
  admitDeregistration: { input: {} },
  admitSet: { input: {} },
  admitSetCommand: { input: {} },
  provision: {
    location,
    runnerName: 'linux-0123456789',
    ciServer: {
      credential: 'default',
      registration: { scope, labels: ['linux'], group: 'default', ephemeral: true, mode: 'jit' },
    },
    pod: { identity, labels: {}, terminationGracePeriodSeconds: 1, volumeClaims: claims },
    credentialsRetryMs: 1,
    completeWithinMs: 1,
  },
  findProvisioned: { location, identity, hasRegistration: false },
  awaitPod: { location, pod, until: 'ended', notify: { set: 's', event: ended } },
  getPod: { location, pod },
  awaitRunnerOnline: {
    scope,
    credential: 'default',
    runner,
    intervalMs: 1,
    credentialsRetryMs: 1,
  },
  removeRegistration: {
    scope,
    credential: 'default',
    runner,
    onBusy: 'return',
    credentialsRetryMs: 1,
  },
  admitRerun: { input: {} },
  findLostJob: lost,
  awaitRerun: { ...lost, job, perRun: 1, recorded: false, lostAtMs: 1 },
  forceCancelRun: {
    ...lost,
    job,
    perRun: 1,
    recorded: true,
    perDay: 20,
    stoppedAtMs: 1,
    lostAtMs: 1,
    forceCancelAfterMs: 1,
  },
  requestRerun: {
    ...lost,
    job,
    perRun: 1,
    recorded: true,
    perDay: 20,
    stoppedAtMs: 1,
    lostAtMs: 1,
  },
  tearDown: { location, identity, pod: { ref: pod }, secret: true, claims },
  fenceClaims: { location, identity, claims, writer: { podUid: 'u', node: 'n' } },
  awaitClaims: { location, identity, claims },
  sweepPlace: { input: {}, taskQueue: 'q' },
  evaluateSchedules: { schedules: [{ cron: '0 8 * * 1-5', timeZone: 'UTC', durationMs: 1 }] },
  startRunners: {
    set: 's',
    templateHash: 'h',
    ephemeral: true,
    template: {},
    notifyBusy: false,
    notifyEndEarly: false,
    priority: 'normal',
    runners: [{ workflowId: 'runner-s-a' }],
  },
  drainRunners: { runners: [{ workflowId: 'w', reason: '' }] },
  listRunners: { set: 's' },
  findEndedRunners: { workflowIds: ['w'] },
  notifySet: { set: 's', event: ended },
  checkQueuedJobs: {
    set: 's',
    taskQueue: 'q',
    scope,
    credential: 'default',
    labels: [],
    requestedAt: 1,
    maxAgeMs: 1,
    overdue: [{ key: '1/1', repository: 'acme/web' }],
    reroutedHere: [],
    reroutedTo: [],
  },
  admitListener: { input: {} },
  listen: {
    listener: LISTENER,
    cursor: { sessionId: 'a-b', openedAt: 1, lastMessageId: 0 },
  },
  closeScaleSet: { listener: LISTENER, remove: true },
  startListener: LISTENER,
  observeCapacity: { set: 's', runners: ['w'] },
  rerouteJobs: { set: 's', routing: {}, jobs: [], draining: false, forwardedEvents: [] },
} as const satisfies Record<CheckedActivity, object>;

/** The input with another value at one path. */
function put(input: object, path: string, value: unknown): object {
  const copy = structuredClone(input) as Record<string, unknown>;
  const fields = path.split('.');
  const last = fields.pop() ?? '';
  let at = copy;
  for (const field of fields) at = at[field] as Record<string, unknown>;
  if (value === undefined) delete at[last];
  else at[last] = value;
  return copy;
}

describe('every activity with an input has a schema', () => {
  const activities = createActivities({
    compute: new FakeCompute(),
    ciServers: new FakeCiServer(),
  } as unknown as ActivityPorts);

  test('under the name of the activity', () => {
    expect(Object.keys(ACTIVITY_INPUTS).toSorted()).toEqual(
      Object.keys(activities)
        .filter((name) => name !== 'getTime')
        .toSorted(),
    );
  });

  test.each(Object.keys(SOUND) as CheckedActivity[])(
    '%s: the input that workflows send is valid',
    (name) => {
      expect(activityInputErrors(name, JSON.parse(JSON.stringify(SOUND[name])))).toEqual([]);
    },
  );

  test.each(
    (Object.keys(SOUND) as CheckedActivity[]).flatMap((name) =>
      [undefined, null, 'x', 5, []].map((input): [CheckedActivity, unknown] => [name, input]),
    ),
  )('%s of %j fails without a retry, with a code', async (name, input) => {
    const run = activities[name as keyof HoldfastActivities] as (
      input: unknown,
    ) => Promise<unknown>;
    await expect(quietly().run(run, input)).rejects.toMatchObject({
      type: 'InvalidInput',
      nonRetryable: true,
    });
  });
});

describe('an invalid field is rejected, and the error names it', () => {
  const NO_TIME = [undefined, '5', -9e15, -1, 9e15, 1e300];
  const NO_NAME = ['..', '.', 'a/../b', '../x', 'a b', '', 'a\u0000', 5, undefined];
  const ROWS: [CheckedActivity, path: string, values: readonly unknown[]][] = [
    ['provision', 'location', [undefined, {}, 'x']],
    ['provision', 'ciServer.registration.scope.name', ['.', '..', 'acme/.', 'a/b', 'x?y']],
    ['provision', 'ciServer.registration.scope.kind', ['user', undefined]],
    ['provision', 'ciServer.registration.group', [undefined, { id: '..' }, 5]],
    ['provision', 'ciServer.credential', NO_NAME],
    ['provision', 'pod.identity.firstRunId', NO_NAME],
    ['provision', 'pod.identity.attempt', [0, -1, 1.5, '1', undefined]],
    ['provision', 'pod.namespace', ['..', 'kube/system']],
    ['provision', 'pod.volumeClaims.0.name', NO_NAME],
    ['provision', 'runnerName', NO_NAME],
    ['removeRegistration', 'runner.id', ['..', '.', 'a/b', '1?x', '1#x', '%2e%2e', 7]],
    ['removeRegistration', 'runner.name', NO_NAME],
    ['removeRegistration', 'scope', [undefined, { kind: 'repository', name: 'acme/.' }]],
    ['awaitRunnerOnline', 'scope.name', ['..', 'acme/.']],
    ['getPod', 'location', [undefined]],
    ['getPod', 'pod.uid', ['', undefined, '..', 5]],
    ['getPod', 'pod.name', [...NO_NAME, 'UPPER']],
    ['awaitPod', 'pod.uid', ['', undefined]],
    ['awaitPod', 'until', ['x', undefined]],
    ['awaitPod', 'notify.set', NO_NAME.slice(0, -1)],
    ['tearDown', 'location', [undefined]],
    ['tearDown', 'identity', [undefined, {}]],
    ['tearDown', 'pod.ref.uid', ['', undefined]],
    ['tearDown', 'pod.gracePeriodSeconds', [-1, '0']],
    ['tearDown', 'claims.0.name', ['/../../../../VICTIM', '..']],
    ['tearDown', 'claims.0.claim', ['/../../VICTIM', '..']],
    ['fenceClaims', 'writer.podUid', ['a/b', '']],
    ['fenceClaims', 'writer.node', ['..', 'a/b']],
    ['listRunners', 'set', NO_NAME],
    ['checkQueuedJobs', 'overdue.0.repository', ['acme/..', '../x', 'acme']],
    ['checkQueuedJobs', 'requestedAt', NO_TIME],
    ['awaitRerun', 'lostAtMs', NO_TIME],
    ['startRunners', 'priority', ['urgent']],
    ['listen', 'listener.set', NO_NAME],
    ['listen', 'listener.scope.name', ['..', 'acme/.']],
    ['listen', 'listener.adopt', [false, 'yes']],
    ['listen', 'cursor.sessionId', ['a/b', '', '../x']],
    ['listen', 'cursor.openedAt', NO_TIME],
    ['startListener', 'name', NO_NAME],
    ['closeScaleSet', 'listener.credential', NO_NAME],
    ['closeScaleSet', 'remove', ['yes', undefined]],
  ];
  test.each(
    ROWS.flatMap(([name, path, values]) =>
      values.map((value): [string, string, unknown] => [name, path, value]),
    ),
  )('%s %s %j', (name, path, value) => {
    const errors = activityInputErrors(
      name as CheckedActivity,
      put(SOUND[name as CheckedActivity], path, value),
    );
    // An error for a missing field names its parent, or a field of it.
    expect(errors.map(({ field }) => field)).toEqual(
      expect.arrayContaining([expect.stringMatching(new RegExp(`^${path}(\\.|$)`))]),
    );
  });

  test.each([
    ['tearDown', 'namespace'],
    ['tearDown', 'pod.ref.namespace'],
    ['getPod', 'pod.namespace'],
    ['provision', 'pod.namespace'],
    ['findProvisioned', 'namespace'],
    ['awaitClaims', 'namespace'],
  ] as const)('%s: %s is that of the location', (name, path) => {
    const here = put(SOUND[name], 'location', inNamespace);
    expect(activityInputErrors(name, put(here, path, 'ci'))).toEqual([]);
    expect(activityInputErrors(name, put(here, path, 'kube-system'))).toMatchObject([
      { field: path },
    ]);
  });
});

describe("a runner's objects belong to its own workflow", () => {
  const activities = createActivities({
    compute: new FakeCompute(),
    ciServers: new FakeCiServer(),
  } as unknown as ActivityPorts);

  test.each([
    ['admitRunner', 'workflowId'],
    ['admitJob', 'workflowId'],
    ['provision', 'pod.identity.workflowId'],
    ['findProvisioned', 'identity.workflowId'],
    ['tearDown', 'identity.workflowId'],
    ['fenceClaims', 'identity.workflowId'],
    ['awaitClaims', 'identity.workflowId'],
    ['awaitPod', 'notify.event.workflowId'],
    ['notifySet', 'event.workflowId'],
  ] as const)('%s: %s is that of the workflow that asks', async (name, path) => {
    const run = activities[name] as (input: unknown) => Promise<unknown>;
    const input = put(SOUND[name], path, 'runner-victim');
    await expect(quietly().run(run, input)).rejects.toMatchObject({
      type: 'ForeignObject',
      nonRetryable: true,
      message: expect.stringContaining(path),
    });
  });
});
