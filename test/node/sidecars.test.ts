/** Pods with more than a runner in them, or beside it: what outlives the runner and for how long, and what is none of the supervisor's business. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect } from '@jest/globals';
import { loadKubeConfig } from '../../activities/compute/kubernetes/kubeConfig.ts';
import type { RunnerInput } from '../../core/contract/index.ts';
import { CLUSTER_POLICY, ClusterWorld } from '../support/clusterWorld.ts';
import { CommandRun } from '../support/commandRun.ts';
import { inContainer, PodLog } from '../support/podLog.ts';
import { describeWithLab } from '../support/lab.ts';
import {
  MAKES_JOB_PODS,
  readJobObjects,
  makeJobObjects,
  ownersOf,
  type Owners,
} from '../support/jobObjects.ts';
import { gracefully, interrupted, notExited, TICK } from '../support/stoppedChildren.ts';
import { together, type Scenario } from '../support/together.ts';
import { untilSeen } from '../support/until.ts';

/** Processes of the node are nobody's to see by default. */
const folder = mkdtempSync(join(tmpdir(), 'hf-sidecars-'));
const POLICY = join(folder, 'policy.json');
writeFileSync(POLICY, JSON.stringify({ ...CLUSTER_POLICY, host: ['pid'] }));
afterAll(() => rmSync(folder, { recursive: true }));

const BUSYBOX = 'holdfast.test/busybox:1';
const STOP = { signalTimeout: '5s', cleanupTimeout: '5s' };
/** The same with time for records and kills on a busy machine. */
const LONG_STOP = { ...STOP, cleanupTimeout: '50s' };
const LONG_GRACE_SECONDS = 60;
/** The pod's grace: the sum of the two and five seconds, at least thirty. */
const GRACE_MS = 30_000;
/** Less than the grace: who leaves within it was not waited for. */
const SLACK_MS = 20_000;

/** The runner writes its log to a folder, from which a native sidecar ships it. */
function shipping(onTerm: string): Partial<RunnerInput> {
  const volumeMounts = [{ name: 'logs', mountPath: '/logs' }];
  const shipper = `shipped=0
    ship() { while read -r line; do n=$((n+1)); [ "$n" -gt "$shipped" ] && echo "shipped $line" && shipped=$n; done < /logs/out; n=0; }
    trap '${onTerm}' TERM
    touch /logs/out; n=0
    while :; do ship; sleep 0.2; done`;
  const spec = {
    volumes: [{ name: 'logs', emptyDir: {} }],
    initContainers: [
      {
        name: 'shipper',
        image: BUSYBOX,
        restartPolicy: 'Always',
        command: ['sh', '-c', shipper],
        volumeMounts,
      },
    ],
    containers: [{ name: 'runner', volumeMounts }],
  };
  return { stop: STOP, pod: { spec } };
}
/** A runner that writes its last line when the test lets it. */
const HELD =
  'echo up > /logs/out; until [ -e /logs/go ]; do sleep 0.1; done; echo last >> /logs/out';
async function letEnd({ namespace }: ClusterWorld, pod: string): Promise<void> {
  await inContainer(namespace, pod, 'touch /logs/go');
}
const LAST_WORDS = 'ship; echo "shipper leaves"; exit 0';

/** Starts a life with a sidecar, and brings it to the point where both work. */
async function shipped(
  world: ClusterWorld,
  name: string,
  script: string,
  onTerm: string,
): Promise<{ life: CommandRun; pod: string; shipper: PodLog }> {
  const life = await CommandRun.start(world, name, script, shipping(onTerm));
  const { pod } = await life.running();
  const shipper = await PodLog.follow(world.namespace, pod, 'shipper');
  await shipper.says('shipped up');
  return { life, pod, shipper };
}

async function expectShipped(
  { life, shipper }: Awaited<ReturnType<typeof shipped>>,
  last: string,
  withinMs: number,
): Promise<void> {
  const { text } = await shipper.complete();
  expect(text).toContain(`shipped ${last}`);
  const [runner, sidecar] = [life.containerEnds()[0], life.containerEnds('shipper')[0]];
  const outlivedMs = (sidecar?.finishedAt ?? Number.NaN) - (runner?.finishedAt ?? Number.NaN);
  expect(outlivedMs).toBeGreaterThanOrEqual(0);
  expect(outlivedMs).toBeLessThan(withinMs);
}

const sidecars: Record<string, Scenario<ClusterWorld>> = {
  'a log collector ships the last line of a runner that ends by itself, and leaves': async (
    world,
  ) => {
    const parts = await shipped(world, 'collected', HELD, LAST_WORDS);
    await letEnd(world, parts.pod);
    expect(await parts.life.ends()).toMatchObject({ outcome: 'succeeded', exitCode: 0 });
    await expectShipped(parts, 'last', SLACK_MS);
    expect(parts.life.containerEnds('shipper')).toMatchObject([{ exitCode: 0 }]);
  },

  'a log collector outlives a runner that is told to go, and ships what it says at its end': async (
    world,
  ) => {
    const parts = await shipped(
      world,
      'told',
      `trap "sleep 2; echo last >> /logs/out; exit 4" TERM; echo up > /logs/out; ${TICK}`,
      LAST_WORDS,
    );
    await parts.life.run.deletePod(parts.pod, GRACE_MS / 1_000);
    expect(await parts.life.ends()).toMatchObject({
      outcome: 'errored',
      cause: 'deleted_externally',
      exitCode: 4,
    });
    await expectShipped(parts, 'last', SLACK_MS);
    // Told to go only after the runner had ended.
    expect((await parts.shipper.says('shipper leaves')).at).toBeGreaterThanOrEqual(
      (await parts.shipper.says('shipped last')).at,
    );
  },

  'a log collector that does not leave is killed at the end of the budget, and the verdict did not wait for it':
    async (world) => {
      const parts = await shipped(world, 'stubborn', HELD, 'echo "shipper stays"');
      await letEnd(world, parts.pod);
      expect(await parts.life.ends()).toMatchObject({ outcome: 'succeeded', exitCode: 0 });
      await expectShipped(parts, 'last', GRACE_MS + SLACK_MS);
      expect(parts.life.containerEnds('shipper')).toMatchObject([{ exitCode: 137 }]);
    },
};

/** Ignores what it is told, and leaves an orphan in a session of its own that does so, too. */
const STUBBORN = `(setsid sh -c 'trap "" TERM INT; echo orphan; sleep 77; :' &); trap "" TERM INT; echo up; sleep 77`;

async function expectOnlyItsOwnKilled(life: CommandRun, pod: string, log: PodLog): Promise<void> {
  await log.says('up');
  await log.says('orphan');
  await life.run.deletePod(pod, LONG_GRACE_SECONDS);
  expect(await life.ends()).toMatchObject({
    outcome: 'errored',
    cause: 'deleted_externally',
    exitCode: 137,
  });
  expect((await log.complete()).errors.map(({ text }) => text)).toEqual([
    interrupted('terminated'),
    notExited('5s'),
  ]);
  expect(life.containerEnds()).toMatchObject([
    { record: { exitCode: 137, signal: 'SIGKILL', reason: 'cancelled' } },
  ]);
}

const shared: Record<string, Scenario<ClusterWorld>> = {
  "hostPID: the node's processes and other pods' live on": async (world) => {
    const stranger = spawn('sleep', ['300'], { stdio: 'ignore', detached: true });
    const neighbour = await CommandRun.start(
      world,
      'neighbour',
      `trap "exit 0" TERM; echo up; ${TICK}`,
      { stop: STOP },
    );
    try {
      const beside = await neighbour.running();
      await beside.log.says('up');
      const life = await CommandRun.start(world, 'host-pid', STUBBORN, {
        stop: LONG_STOP,
        pod: { spec: { hostPID: true } },
      });
      const { pod, log } = await life.running();
      const before = neighbour
        .processes()
        .filter(({ command }) => command.startsWith('sh') || command.includes('supervisor'))
        .map(({ pid }) => pid);
      await expectOnlyItsOwnKilled(life, pod, log);
      expect([stranger.exitCode, stranger.signalCode]).toEqual([null, null]);
      expect(neighbour.processes().map(({ pid }) => pid)).toEqual(expect.arrayContaining(before));
      expect(before.length).toBeGreaterThanOrEqual(2);
      await neighbour.run.handle.signal('cancel', 'the test is over');
      expect(await neighbour.ends()).toMatchObject({ outcome: 'aborted', exitCode: 0 });
    } finally {
      stranger.kill('SIGKILL');
    }
  },

  "shareProcessNamespace: the pod's other containers live on until they are told": async (
    world,
  ) => {
    const companion = {
      name: 'companion',
      image: BUSYBOX,
      restartPolicy: 'Always',
      command: [
        'sh',
        '-c',
        `trap 'echo "companion was told"; exit 9' TERM; echo companion; ${TICK}`,
      ],
    };
    const life = await CommandRun.start(world, 'shared', STUBBORN, {
      stop: LONG_STOP,
      pod: { spec: { shareProcessNamespace: true, initContainers: [companion] } },
    });
    const { pod, log } = await life.running();
    const beside = await PodLog.follow(world.namespace, pod, 'companion');
    await expectOnlyItsOwnKilled(life, pod, log);
    expect((await beside.complete()).text).toBe('companion\ncompanion was told');
    const [runner, other] = [life.containerEnds()[0], life.containerEnds('companion')[0]];
    expect(other?.exitCode).toBe(9);
    expect(other?.finishedAt ?? 0).toBeGreaterThanOrEqual(runner?.finishedAt ?? Number.NaN);
  },
};

const jobPods: Record<string, Scenario<ClusterWorld>> = {
  'pods that a job has of its own go with a runner that is killed, and their Secrets': async (
    world,
  ) => {
    const life = await CommandRun.start(world, 'job-pods', `trap "exit 0" TERM; echo up; ${TICK}`, {
      stop: STOP,
      pod: { spec: { containers: [{ name: 'runner', env: [MAKES_JOB_PODS] }] } },
    });
    const { pod } = await life.running();
    const { core, name: namespace } = world.namespace;
    const place = { kubeConfig: loadKubeConfig({ path: world.kubeconfig }), namespace };
    const made = await makeJobObjects(place, pod, { image: BUSYBOX });
    await world.namespace.waitForPod(
      made.job.name ?? '',
      ({ status }) => status?.phase === 'Running',
      120_000,
    );
    const seen = async (): Promise<Owners> => ownersOf(await readJobObjects(place, made));
    await untilSeen('all to have an owner', seen, (owners) =>
      Object.values(owners).every((each) => each?.[0]?.name === pod),
    );
    await core.deleteNamespacedPod({ name: pod, namespace, body: { gracePeriodSeconds: 0 } });
    expect(await life.ends()).toMatchObject({ outcome: 'errored', cause: 'deleted_externally' });
    await untilSeen(
      'nothing of the job to be left',
      seen,
      (owners) => Object.keys(owners).length === 0,
    );
  },
};

const HUNGRY_BOUND_MS = 15_000;

/** A job that takes every core several times over does not keep its supervisor from passing a signal on. */
async function measureHunger(world: ClusterWorld): Promise<void> {
  const hogs = availableParallelism() * 4;
  const script = `for i in $(seq ${hogs}); do (trap - TERM; while :; do :; done) & done; trap 'echo passed on; exit 6' TERM; echo up; wait`;
  const latencies: [heard: number, rerouted: number][] = [];
  for (let round = 0; round < 3; round++) {
    const life = await CommandRun.start(world, 'hungry', script, {
      stop: { ...STOP, signalTimeout: '60s' },
    });
    const { pod, log } = await life.running();
    await log.says('up');
    await inContainer(world.namespace, pod, `date +%s%N > /proc/1/fd/1; kill -TERM 1`);
    expect(await life.ends()).toMatchObject({ outcome: 'failed', exitCode: 6 });
    expect((await log.complete()).errors.map(({ text }) => text)).toEqual([
      interrupted('terminated'),
      gracefully('1m0s'),
    ]);
    const sent = log.text.split('\n').find((line) => /^\d{10,}/.test(line));
    expect(sent).toBeDefined();
    const sentAt = (await log.says(sent ?? '')).at;
    latencies.push([
      (log.errors[0]?.at ?? Number.NaN) - sentAt,
      (await log.says('passed on')).at - sentAt,
    ]);
  }
  process.stderr.write(
    `figures: with ${hogs} hungry processes, signal to supervisor and to its command: ${latencies.map((pair) => pair.join(' and ')).join('; ')} ms\n`,
  );
  // Of one round in three, the machine may have been busy with something else.
  const median = (values: readonly number[]): number | undefined =>
    values.toSorted((a, b) => a - b)[1];
  expect(median(latencies.map(([heard]) => heard))).toBeLessThan(HUNGRY_BOUND_MS);
  expect(median(latencies.map(([, rerouted]) => rerouted))).toBeLessThan(HUNGRY_BOUND_MS);
}

const nothingLeft = {
  'nothing is left: no pod, Secret or running workflow': async (world: ClusterWorld) =>
    await world.expectNothingLeft(),
};

await describeWithLab(
  'pods with several containers',
  { temporal: true, nodes: 'kubelet' },
  (lab) => {
    together(
      async () =>
        await ClusterWorld.open(lab, {
          webhook: false,
          settings: { HOLDFAST_POD_POLICY_FILE: POLICY },
        }),
      { ...sidecars, ...shared },
      { afterwards: nothingLeft },
    );
  },
);

await describeWithLab('pods of jobs', { temporal: true, nodes: 'kubelet' }, (lab) => {
  together(
    async () =>
      await ClusterWorld.open(lab, {
        webhook: false,
        jobPods: true,
        settings: { HOLDFAST_POD_POLICY_FILE: POLICY },
      }),
    jobPods,
    { afterwards: nothingLeft },
  );
});

await describeWithLab('a job that uses all CPU', { temporal: true, nodes: 'kubelet' }, (lab) => {
  together(
    async () => await ClusterWorld.open(lab, { webhook: false }),
    { 'does not starve its supervisor': measureHunger },
    { afterwards: nothingLeft },
  );
});
