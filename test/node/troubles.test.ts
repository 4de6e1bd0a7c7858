import { expect } from '@jest/globals';
import { ClusterWorld } from '../support/clusterWorld.ts';
import { cleanEnd } from '../support/demoRunners.ts';
import { describeWithLab } from '../support/lab.ts';
import { together, type Scenario } from '../support/together.ts';

/** Under an init, because the first process of a container gets no signal that it does not ask for. */
const SLEEP = ['/sbin/tini', '--', 'sleep', '600'];
const OLD_VERSION = '2.0.0';
const LITTLE_MEMORY = {
  spec: { containers: [{ name: 'runner', resources: { limits: { memory: '256Mi' } } }] },
};

const troubles: Record<string, Scenario<ClusterWorld>> = {
  'an image that cannot be pulled: errored/image_pull before the deadline for pending pods': async (
    world,
  ) => {
    const run = await world.start('unpullable', {
      image: 'holdfast.test/does-not-exist:1',
      command: ['run'],
    });
    expect(await run.ends()).toMatchObject({
      outcome: 'errored',
      cause: 'image_pull',
      message: expect.stringContaining('does-not-exist'),
      attempt: 1,
    });
  },

  // At once, and not after half a minute: this reason of the kubelet's is what decides it.
  'an image whose name is wrong: errored/image_pull': async (world) => {
    const run = await world.start('misnamed', {
      image: 'holdfast.test/NOT A NAME',
      command: ['run'],
    });
    expect(await run.ends()).toMatchObject({
      outcome: 'errored',
      cause: 'image_pull',
      message: expect.stringContaining('InvalidImageName'),
      attempt: 1,
    });
  },

  'a pod that no node takes: errored/unschedulable, with the scheduler’s reason': async (world) => {
    const run = await world.start('unschedulable', {
      pod: { spec: { nodeSelector: { 'holdfast.test/nobody': 'has' } } },
      timeouts: { podUnscheduled: '30s' },
    });
    expect(await run.ends()).toMatchObject({
      outcome: 'errored',
      cause: 'unschedulable',
      message: expect.stringContaining('nodes are available'),
      attempt: 1,
    });
  },

  'a container that does not start: errored/pending_timeout': async (world) => {
    const run = await world.start('pending', {
      pod: {
        spec: {
          initContainers: [{ name: 'slow', image: 'holdfast.test/runner:1', command: SLEEP }],
        },
      },
      timeouts: { podPending: '6s' },
    });
    expect(await run.ends()).toMatchObject({
      outcome: 'errored',
      cause: 'pending_timeout',
      attempt: 1,
    });
  },

  'a runner that never registers: errored/never_registered': async (world) => {
    const run = await world.start('silent', { command: SLEEP, timeouts: { registration: '5s' } });
    expect(await run.ends()).toMatchObject({
      outcome: 'errored',
      cause: 'never_registered',
      message: expect.stringContaining('5s'),
      attempt: 1,
    });
  },

  'a runner killed for memory: failed/oom_killed, not tried again': async (world) => {
    const run = await world.start('greedy', { command: ['tail', '/dev/zero'], pod: LITTLE_MEMORY });
    expect(await run.ends()).toMatchObject({
      outcome: 'failed',
      cause: 'oom_killed',
      exitCode: 137,
      attempt: 1,
      replacements: [],
    });
    expect({ pods: run.podsEver().length, registered: run.registeredEver() }).toEqual({
      pods: 1,
      registered: 1,
    });
  },

  'a job killed for memory under a runner that lives on: the job’s failure, not the runner’s':
    async (world) => {
      const run = await world.start('greedy-job', { pod: LITTLE_MEMORY });
      const job = run.queueJob('echo begun; tail /dev/zero; echo "ended with $?"; exit 1');
      const result = await run.ends();
      expect(run.job(job)).toMatchObject({
        conclusion: 'failure',
        output: expect.arrayContaining(['begun', 'ended with 137']),
      });
      expect(result).toMatchObject({ outcome: 'succeeded', exitCode: 0, attempt: 1 });
    },

  'a version that the CI server refuses (exit code 7): errored/runner_deprecated': async (
    world,
  ) => {
    world.simulator.setDeprecatedVersions([OLD_VERSION]);
    const run = await world.start('deprecated', { env: { SIM_RUNNER_VERSION: OLD_VERSION } });
    expect(await run.ends()).toMatchObject({
      outcome: 'errored',
      cause: 'runner_deprecated',
      exitCode: 7,
      attempt: 1,
    });
  },

  'a runner process that fails: failed, with its exit code': async (world) => {
    const run = await world.start('failing', { command: ['sh', '-c', 'exit 3'] });
    expect(await run.ends()).toMatchObject({ outcome: 'failed', exitCode: 3, attempt: 1 });
  },

  'a job that kills its runner: failed, not errored; its registration removed once it is free':
    async (world) => {
      const run = await world.start('suicidal');
      const job = run.queueJob('echo begun; kill -9 $PPID; sleep 600');
      const result = await run.ends();
      expect(result).toMatchObject({ outcome: 'failed', attempt: 1 });
      expect(run.job(job)).toMatchObject({
        conclusion: 'failure',
        annotation: expect.stringContaining('lost communication'),
      });
    },

  'a failing job is a success of its runner': async (world) => {
    const run = await world.start('red-job');
    const job = run.queueJob('echo no; exit 42');
    expect(await run.ends()).toMatchObject({ outcome: 'succeeded', exitCode: 0 });
    expect(run.job(job).conclusion).toBe('failure');
  },

  'a CI server that refuses the credential: errored/credentials, and no pod was made': async (
    world,
  ) => {
    const { id } = world.simulator.addFault({ kind: 'not_found', endpoint: '* /orgs/refused-*' });
    const run = await world.start('refused', { timeouts: { provisioning: '15s' } });
    // Whether an interrupted try has registered something is asked for, too: that must not go unanswered for ever.
    await run.reaches('unregistering', ({ phase }) => phase === 'Unregistering');
    world.simulator.clearFaults(id);
    expect(await run.ends()).toMatchObject({
      outcome: 'errored',
      cause: 'credentials',
      attempt: 1,
    });
    expect(run.podsEver()).toEqual([]);
  },
};

await describeWithLab('failures of pods', { temporal: true, nodes: 'kubelet' }, (lab) => {
  together(async () => await ClusterWorld.open(lab), troubles, { afterwards: cleanEnd });
});
