import { describe, expect, test } from '@jest/globals';
import { MockActivityEnvironment } from '@temporalio/testing';
import { createActivities } from '../../../activities/index.ts';
import type { ActivityPorts } from '../../../activities/ports/activityPorts.ts';
import type {
  AdmitRunnerInput,
  AdmittedRunner,
  HoldfastActivities,
} from '../../../core/activities/index.ts';
import { runnerLocation, type ServedLocation } from '../../../core/domain/location.ts';
import { FakeCiServer } from '../../support/fakeCiServer.ts';
import { FakeCompute } from '../../support/fakeCompute.ts';

const HERE: ServedLocation = {
  compute: 'kubernetes',
  cluster: 'c1',
  installation: 'mine',
  namespace: 'ci',
};
const THERE = { ...HERE, cluster: 'c2' };

/** A compute on which only the location may be read. */
class SealedCompute extends FakeCompute {
  override async location(): Promise<ServedLocation> {
    return HERE;
  }

  readonly requests: string[] = [];

  override async getPod(): Promise<undefined> {
    this.requests.push('observe');
    return undefined;
  }

  override async deletePod(): Promise<'deleted'> {
    this.requests.push('deletePod');
    return 'deleted';
  }

  override async deleteRegistrationSecret(): Promise<void> {
    this.requests.push('deleteRegistrationSecret');
  }
}

const identity = { workflowId: 'test', firstRunId: 'r', attempt: 1 };
const pod = { name: 'p', uid: 'u' };

const CALLS: {
  readonly [
    A in
      | 'provision'
      | 'findProvisioned'
      | 'awaitPod'
      | 'getPod'
      | 'tearDown'
      | 'fenceClaims'
      | 'awaitClaims'
  ]: Omit<Parameters<HoldfastActivities[A]>[0], 'location'>;
} = {
  provision: {
    runnerName: 'n',
    pod: { identity, labels: {}, terminationGracePeriodSeconds: 1 },
    credentialsRetryMs: 1,
    completeWithinMs: 1,
  },
  findProvisioned: { identity, hasRegistration: false },
  awaitPod: { pod, until: 'ended' },
  getPod: { pod },
  tearDown: { identity, pod: { ref: pod }, secret: true },
  fenceClaims: { identity, claims: [], writer: { podUid: 'u', node: 'n' } },
  awaitClaims: { identity, claims: [] },
};

describe('for a runner of another location', () => {
  const compute = new SealedCompute();
  const activities = createActivities({
    compute,
    ciServers: { get: () => ({}) },
  } as unknown as ActivityPorts);
  const run = async (
    name: keyof typeof CALLS,
    location: ServedLocation,
    rejections = 0,
  ): Promise<unknown> =>
    await new MockActivityEnvironment({
      heartbeatDetails: { rejections: { WrongLocation: rejections } },
    }).run(activities[name] as (input: unknown) => Promise<unknown>, { ...CALLS[name], location });

  test.each(Object.keys(CALLS) as (keyof typeof CALLS)[])(
    '%s sends no request and returns nothing: it fails until a worker of that location runs it, and names both',
    async (name) => {
      await expect(run(name, THERE)).rejects.toMatchObject({
        type: 'WrongLocation',
        nonRetryable: false,
        message: expect.stringMatching(/kubernetes\/c2\/mine\/ci.*kubernetes\/c1\/mine\/ci/),
      });
      expect({ requests: compute.requests, created: compute.created }).toEqual({
        requests: [],
        created: [],
      });
    },
  );

  test.each([
    [0, 500],
    [1, 1_000],
    [6, 10_000],
    [100, 10_000],
  ])(
    'after %i other failures of the kind the next attempt is in %i ms',
    async (rejections, nextRetryDelay) => {
      await expect(run('awaitPod', THERE, rejections)).rejects.toMatchObject({ nextRetryDelay });
    },
  );

  test('an activity of its own location runs', async () => {
    expect(await run('awaitPod', HERE)).toMatchObject({ ...pod, deleted: true });
  });
});

describe('a runner is admitted', () => {
  const admitted = async (served: ServedLocation, input: object): Promise<AdmittedRunner> => {
    const compute = new FakeCompute();
    compute.location = async () => served;
    const activities = createActivities({
      compute,
      ciServers: new FakeCiServer(),
    } as unknown as ActivityPorts);
    return (await new MockActivityEnvironment().run(
      async (request: AdmitRunnerInput) => await activities.admitRunner(request),
      { input: { organization: 'acme', ...input }, workflowId: 'test', firstRunId: 'r' },
    )) as AdmittedRunner;
  };

  test.each<[string, ServedLocation, object, string | undefined]>([
    ['in the namespace of the worker', HERE, {}, 'ci'],
    [
      'in the namespace of its input',
      { ...HERE, otherNamespaces: ['team-a'] },
      { namespace: 'team-a' },
      'team-a',
    ],
    [
      'without a namespace, if the compute has none',
      { compute: 'process', cluster: 'm', installation: 'mine' },
      {},
      undefined,
    ],
  ])('%s, which its pod requests contain', async (_, served, input, namespace) => {
    const { location, pod: request } = await admitted(served, input);
    expect(location).toEqual(runnerLocation(served, namespace));
    expect(request.namespace).toBe(namespace);
  });
});
