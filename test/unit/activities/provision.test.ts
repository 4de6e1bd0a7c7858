/** An interrupted provisioning: after a worker shutdown another worker continues it, and after a cancellation it creates nothing more. */
import { describe, expect, test } from '@jest/globals';
import { MockActivityEnvironment } from '@temporalio/testing';
import type { ActivityPorts } from '../../../activities/ports/activityPorts.ts';
import type { CiServer, Registration } from '../../../activities/ports/ciServer.ts';
import { locationLabel, runnerHash } from '../../../activities/compute/naming.ts';
import { provision } from '../../../activities/runner/provision.ts';
import type { WithLocation, ProvisionInput } from '../../../core/activities/index.ts';
import { FakeCiServer } from '../../support/fakeCiServer.ts';
import { FakeCompute } from '../../support/fakeCompute.ts';

const INPUT: WithLocation<ProvisionInput> = {
  location: { compute: 'process', cluster: 'c', installation: 'i' },
  runnerName: 'r',
  ciServer: {
    credential: 'default',
    registration: {
      scope: { kind: 'organization', name: 'acme' },
      labels: [],
      group: 'default',
      ephemeral: true,
      mode: 'jit',
    },
  },
  pod: {
    identity: { workflowId: 'w', firstRunId: 'f', attempt: 1 },
    labels: {},
    terminationGracePeriodSeconds: 30,
  },
  credentialsRetryMs: 1_000,
  completeWithinMs: 1_000,
};

const temporalNamespaceId = async (): Promise<string> => 'ns-1';

/** A CI server that registers slowly, and resolves a promise when it gets the request. */
class SlowCiServer extends FakeCiServer {
  readonly requested = Promise.withResolvers<void>();
  readonly answered = Promise.withResolvers<void>();

  override async register(
    request: Parameters<CiServer['register']>[0],
    signal?: AbortSignal,
  ): Promise<Registration> {
    this.requested.resolve();
    const aborted = new Promise<never>((_, reject) =>
      signal?.addEventListener('abort', () => reject(signal.reason as Error)),
    );
    await Promise.race([this.answered.promise, aborted]);
    return await super.register(request);
  }
}

describe('for a registration that outlives its runner', () => {
  async function provisioned(
    labels: readonly string[],
  ): Promise<{ requested: readonly string[]; stored: Registration | undefined }> {
    let requested: readonly string[] = [];
    class NotingCiServer extends FakeCiServer {
      override async register(request: Parameters<CiServer['register']>[0]): Promise<Registration> {
        requested = request.labels;
        return await super.register(request);
      }
    }
    const compute = new FakeCompute();
    const { ciServer } = INPUT;
    const input = {
      ...INPUT,
      ...(ciServer && {
        ciServer: { ...ciServer, registration: { ...ciServer.registration, labels } },
      }),
    };
    await new MockActivityEnvironment({ attempt: 1 }).run(
      async () =>
        await provision(
          {
            compute,
            temporalNamespaceId,
            ciServers: new NotingCiServer(),
          } as unknown as ActivityPorts,
          input,
        ),
    );
    return { requested, stored: await compute.readRegistrationSecret(INPUT.pod.identity) };
  }

  test('it has a label of its location, and its Secret has the location', async () => {
    const { requested, stored } = await provisioned(['linux']);
    expect(requested).toEqual(['linux', locationLabel('process/c/i')]);
    expect(stored).toMatchObject({
      runnerName: 'r',
      at: { scope: { kind: 'organization', name: 'acme' }, credential: 'default' },
    });
  });

  test('a runner with the maximum number of labels gets no other', async () => {
    const most = Array.from({ length: 100 }, (_, index) => `l${index}`);
    expect((await provisioned(most)).requested).toEqual(most);
  });
});

describe('a retry that finds the Secret of an earlier attempt', () => {
  const { identity } = INPUT.pod;

  async function retried(
    meanwhile: (world: { ci: FakeCiServer; compute: FakeCompute }) => void,
  ): Promise<{ error: unknown; ci: FakeCiServer; compute: FakeCompute }> {
    const [ci, compute] = [new FakeCiServer(), new FakeCompute()];
    const attempt = async (number: number): Promise<unknown> =>
      await new MockActivityEnvironment({ attempt: number }).run(
        async () =>
          await provision(
            { compute, temporalNamespaceId, ciServers: ci } as unknown as ActivityPorts,
            INPUT,
          ),
      );
    await attempt(1);
    meanwhile({ ci, compute });
    return {
      error: await attempt(2).then(
        () => undefined,
        (error: unknown) => error,
      ),
      ci,
      compute,
    };
  }
  const vanish = (compute: FakeCompute): void =>
    void compute.pods.delete(compute.podName(identity));

  test('and the pod: both belong to it', async () => {
    const { error, ci, compute } = await retried(() => undefined);
    expect({
      error,
      registered: ci.count('register'),
      found: ci.count('find'),
      pods: compute.pods.size,
    }).toEqual({ error: undefined, registered: 1, found: 0, pods: 1 });
  });

  test('and no pod, and a runner that never connected: a pod is created with it', async () => {
    const { error, ci, compute } = await retried((world) => vanish(world.compute));
    expect({ error, registered: ci.count('register'), pods: compute.pods.size }).toEqual({
      error: undefined,
      registered: 1,
      pods: 1,
    });
  });

  test.each([
    ['online', false],
    ['busy', true],
  ])(
    'and no pod, and a runner that is %s: its registration is not used again',
    async (word, busy) => {
      const { error, ci, compute } = await retried((world) => {
        vanish(world.compute);
        world.ci.connect('r');
        world.ci.setBusy('r', busy);
      });
      expect(error).toMatchObject({
        type: 'CiServerUnavailable',
        message: expect.stringContaining(`r is ${word}, and its pod is gone`),
      });
      expect({ registered: ci.count('register'), pods: compute.pods.size }).toEqual({
        registered: 1,
        pods: 0,
      });
    },
  );

  test('and neither pod nor registration: it registers again', async () => {
    const { error, ci, compute } = await retried((world) => {
      vanish(world.compute);
      world.ci.registrations.clear();
    });
    expect({
      error,
      registered: ci.count('register'),
      pods: compute.pods.size,
      stored: (await compute.readRegistrationSecret(identity))?.runnerId,
    }).toEqual({
      error: undefined,
      registered: 2,
      pods: 1,
      stored: [...ci.registrations.keys()][0],
    });
  });
});

const OWN_NAME = `linux-${runnerHash(INPUT.pod.identity)}`;

test.each([
  ["somebody else's runner, by its name", 'their-big-runner', [], 1],
  ['a runner of another location, by its label', OWN_NAME, ['holdfast-ffffffffff'], 1],
  ["another runner of Holdfast's, by its name", 'linux-0123456789', [], 1],
  ['a runner that an earlier attempt has lost', OWN_NAME, [], 2],
])('a retry that finds the name in use by %s', async (_whose, runnerName, labels, registered) => {
  const [ci, compute] = [new FakeCiServer(), new FakeCompute()];
  const theirs = ci.connect(runnerName, false, labels);
  await new MockActivityEnvironment({ attempt: 2 }).run(
    async () =>
      await provision({ compute, temporalNamespaceId, ciServers: ci } as unknown as ActivityPorts, {
        ...INPUT,
        runnerName,
      }).catch(() => undefined),
  );
  expect({
    registered: ci.count('register'),
    left: ci.registrations.has(theirs),
    pods: compute.pods.size,
  }).toEqual({ registered, left: registered === 1, pods: registered - 1 });
});

describe('while the CI server registers', () => {
  async function interrupted(
    reason: 'WORKER_SHUTDOWN' | 'PAUSED' | 'RESET' | 'CANCELLED',
    thenAnswers: boolean,
  ): Promise<{ error: unknown; ci: SlowCiServer; compute: FakeCompute }> {
    const [ci, compute] = [new SlowCiServer(), new FakeCompute()];
    const activity = new MockActivityEnvironment({ attempt: 1 });
    const ended = activity
      .run(
        async (input: WithLocation<ProvisionInput>) =>
          await provision(
            { compute, temporalNamespaceId, ciServers: ci } as unknown as ActivityPorts,
            input,
          ),
        INPUT,
      )
      .then(
        () => undefined,
        (error: unknown) => error,
      );
    await ci.requested.promise;
    activity.cancel(reason);
    if (thenAnswers) ci.answered.resolve();
    return { error: await ended, ci, compute };
  }

  test.each(['WORKER_SHUTDOWN', 'PAUSED', 'RESET'] as const)(
    '%s ends the attempt immediately, and nothing is final',
    async (reason) => {
      const { error, ci, compute } = await interrupted(reason, false);
      expect(error).toMatchObject({ name: 'CancelledFailure', message: reason });
      expect({ registrations: ci.registrations.size, created: compute.created }).toEqual({
        registrations: 0,
        created: [],
      });
    },
  );

  test('cancelled, it ends when the response arrives, whose registration is removed', async () => {
    const { error, ci, compute } = await interrupted('CANCELLED', true);
    expect(error).toMatchObject({ type: 'ProvisioningSuperseded', nonRetryable: true });
    expect({ registrations: ci.registrations.size, created: compute.created }).toEqual({
      registrations: 0,
      created: [],
    });
  });
});

test.each([
  ['called off', 'CANCELLED'],
  ['interrupted by a worker shutdown', 'WORKER_SHUTDOWN'],
] as const)('a plain command whose provisioning was %s gets no pod', async (_what, reason) => {
  const compute = new FakeCompute();
  const activity = new MockActivityEnvironment({ attempt: 1 });
  const { ciServer: _none, ...command } = INPUT;
  const namespaceRead = async (): Promise<string> => {
    activity.cancel(reason);
    return await temporalNamespaceId();
  };
  const ports = { compute, temporalNamespaceId: namespaceRead } as unknown as ActivityPorts;
  await expect(activity.run(async () => await provision(ports, command))).rejects.toBeDefined();
  expect([...compute.pods]).toEqual([]);
});
