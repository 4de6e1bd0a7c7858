/** Pods that are told to go: what a checkpoint, a drain and a stop make of it, in the pod and for the life. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import { createKubernetesCompute } from '../../activities/compute/kubernetes/kubernetesCompute.ts';
import {
  STOP_REASON_ANNOTATION,
  WORKFLOW_LABEL,
} from '../../activities/compute/kubernetes/metadata.ts';
import { cancelSignal } from '../../core/contract/index.ts';
import { ClusterWorld } from '../support/clusterWorld.ts';
import { countingJob, type ClusterRun } from '../support/clusterRun.ts';
import { CommandRun } from '../support/commandRun.ts';
import { HostPathVolumes } from '../support/hostPathVolumes.ts';
import { describeWithLab } from '../support/lab.ts';
import { PodLog } from '../support/podLog.ts';
import { census, gracefully, interrupted, TICK } from '../support/stoppedChildren.ts';
import { together, type Scenario } from '../support/together.ts';
import { until } from '../support/until.ts';

/** Counts until it is told to go, and saves how far it has come; the second attempt has ten steps more to go. */
const CHECKPOINTING = `
  step=$(cat "$HOLDFAST_STATE_DIR/step" 2> /dev/null || echo 0)
  last=$([ "$HOLDFAST_ATTEMPT" = 1 ] && echo 3000 || echo $((step+10)))
  trap 'echo "$step" > "$HOLDFAST_STATE_DIR/step"; echo "saved $step because $(cat "$HOLDFAST_STOP_REASON_FILE")"; exit 143' TERM
  echo "attempt $HOLDFAST_ATTEMPT from step $step"
  while [ "$step" -lt "$last" ]; do sleep 0.2; step=$((step+1)); echo "at $step"; done
  echo complete`;

const STOP = { signalTimeout: '10s', cleanupTimeout: '5s', cleanupCommand: census(true) };
const RESUMING = { onTerm: 'checkpoint', onEviction: 'resume', stop: STOP } as const;

type Goodbye = (run: ClusterRun, pod: string) => Promise<void>;
const deleted: Goodbye = async (run, pod) => await run.deletePod(pod, 30);
const evicted: Goodbye = async (run, pod) => await run.evict(pod);

async function claimsOf(
  { namespace }: ClusterWorld,
  storageClass: string | undefined,
): Promise<string[]> {
  const { items } = await namespace.core.listNamespacedPersistentVolumeClaim({
    namespace: namespace.name,
  });
  return items
    .filter(({ spec }) => spec?.storageClassName === storageClass)
    .map(({ metadata }) => metadata?.name ?? '');
}

/** Lost at a step, gone on from there, complete: no word of a cancellation anywhere. */
async function goesOn(world: EvictionWorld, goodbye: Goodbye, cause: string): Promise<void> {
  const { claim, folder } = await world.volumes.stateClaim();
  const life = await CommandRun.start(world.cluster, `checkpoint-${cause}`, CHECKPOINTING, {
    ...RESUMING,
    volumeClaims: [claim],
  });
  const first = await life.running();
  await first.log.says('at 10');
  await goodbye(life.run, first.pod);
  const second = await life.running(2);
  const saved = /saved (\d+) because (\w+)/.exec((await first.log.complete()).text);
  const step = Number(saved?.[1]);
  expect(step).toBeGreaterThanOrEqual(10);
  expect(saved?.[2]).toBe('evicted');
  await second.log.says(`attempt 2 from step ${step}`);
  expect(await claimsOf(world.cluster, claim.storageClass)).toHaveLength(1);

  const result = await life.ends();
  expect(result).toMatchObject({
    outcome: 'succeeded',
    exitCode: 0,
    attempt: 2,
    replacements: [{ cause }],
  });
  expect(result.cause).toBeUndefined();
  const { text } = await second.log.complete();
  expect(text).toContain('complete');
  expect(text).not.toContain(`at ${step}\n`);
  expect(first.log.text).toContain('reason=evicted');
  expect(life.containerEnds().map(({ exitCode, record }) => [exitCode, record?.reason])).toEqual([
    [143, 'evicted'],
    [0, null],
  ]);
  expect(Number(await readFile(join(folder, 'step'), 'utf8'))).toBe(step);
  await until(
    'the claim to be gone',
    async () => (await claimsOf(world.cluster, claim.storageClass)).length === 0,
  );
}

const checkpoints: Record<string, Scenario<EvictionWorld>> = {
  'a deleted pod: attempt 2 goes on from the saved step': async (world) =>
    await goesOn(world, deleted, 'deleted_externally'),
  'an evicted pod: attempt 2 goes on from the saved step': async (world) =>
    await goesOn(world, evicted, 'evicted'),

  'cancelled: aborted/cancelled, nothing goes on, and the pod knows why': async ({
    cluster,
    volumes,
  }) => {
    const { claim } = await volumes.stateClaim();
    const life = await CommandRun.start(cluster, 'cancelled', CHECKPOINTING, {
      ...RESUMING,
      volumeClaims: [claim],
    });
    const { log } = await life.running();
    await log.says('at 3');
    await life.run.handle.signal(cancelSignal, 'enough');
    expect(await life.ends()).toMatchObject({
      outcome: 'aborted',
      cause: 'cancelled',
      exitCode: 143,
      attempt: 1,
      replacements: [],
    });
    const { text } = await log.complete();
    expect(text).toMatch(/saved \d+ because cancelled/);
    expect(text).toContain('reason=cancelled');
    expect(life.containerEnds()).toMatchObject([
      { record: { exitCode: 143, reason: 'cancelled' } },
    ]);
    await until(
      'the claim to be gone',
      async () => (await claimsOf(cluster, claim.storageClass)).length === 0,
    );
  },
};

const draining = (drainTimeout: string) =>
  ({ onTerm: 'drain', stop: { ...STOP, drainTimeout } }) as const;

const drains: Record<string, Scenario<EvictionWorld>> = {
  'a CI job that fits in the drain ends in peace: succeeded': async ({ cluster }) => {
    const run = await cluster.start('drain-fits', draining('60s'));
    const job = await run.runJob(countingJob(15));
    const { pod } = await run.listens();
    await run.evict(pod);
    expect(await run.ends()).toMatchObject({
      outcome: 'succeeded',
      exitCode: 0,
      attempt: 1,
      replacements: [],
    });
    run.expectUnharmed(job);
  },

  'a CI job that does not: interrupted after the drain, with its grace; errored/evicted': async ({
    cluster,
  }) => {
    const run = await cluster.start('drain-short', draining('10s'));
    const job = await run.runJob(countingJob(600));
    const { pod } = await run.listens();
    const log = await PodLog.follow(cluster.namespace, pod);
    await run.evict(pod);
    expect(await run.ends()).toMatchObject({ outcome: 'errored', cause: 'evicted', attempt: 1 });
    run.expectInterrupted(job);
    const [term, over] = (await log.complete()).errors;
    expect([term?.text, over?.text]).toEqual([
      interrupted('terminated'),
      'Process did not finish before 10s drain timeout',
    ]);
    // By when the lines were written, of which either may be a little late.
    expect((over?.at ?? Number.NaN) - (term?.at ?? Number.NaN)).toBeGreaterThan(2_000);
    expect(log.text).toContain('reason=drained');
  },

  'an idle CI runner is not waited for, and replaced': async ({ cluster }) => {
    const run = await cluster.start('drain-idle', draining('10m'));
    const { pod } = await run.listens();
    await run.evict(pod);
    await run.listens(2);
    const job = run.queueJob(countingJob(1));
    expect(await run.ends()).toMatchObject({
      outcome: 'succeeded',
      attempt: 2,
      replacements: [{ cause: 'evicted' }],
    });
    run.expectUnharmed(job);
  },

  'a command that fits in the drain: succeeded': async ({ cluster }) => {
    const life = await CommandRun.start(
      cluster,
      'command-fits',
      'trap "echo disturbed" TERM INT; echo up; sleep 15; echo done',
      draining('60s'),
    );
    const { pod, log } = await life.running();
    await log.says('up');
    await life.run.deletePod(pod, 80);
    expect(await life.ends()).toMatchObject({ outcome: 'succeeded', exitCode: 0, attempt: 1 });
    expect((await log.complete()).errors.map(({ text }) => text)).toEqual([
      interrupted('terminated'),
    ]);
    expect(log.text).toMatch(/up\n[^]*done/);
    expect(log.text).not.toContain('disturbed');
    expect(life.containerEnds()).toMatchObject([{ record: { exitCode: 0, reason: null } }]);
  },

  'a command that does not: stopped after the drain, errored/evicted': async ({ cluster }) => {
    const life = await CommandRun.start(
      cluster,
      'command-short',
      `trap "exit 5" TERM; echo up; ${TICK}`,
      draining('3s'),
    );
    const { pod, log } = await life.running();
    await log.says('up');
    await life.run.evict(pod);
    expect(await life.ends()).toMatchObject({
      outcome: 'errored',
      cause: 'evicted',
      exitCode: 5,
      attempt: 1,
    });
    expect((await log.complete()).errors.map(({ text }) => text)).toEqual([
      interrupted('terminated'),
      'Process did not finish before 3s drain timeout',
      gracefully('10s'),
    ]);
    expect(life.containerEnds()).toMatchObject([{ record: { exitCode: 5, reason: 'drained' } }]);
  },

  'cancelled with stop: a busy runner whose SIGTERM would mean a drain is stopped at once': async ({
    cluster,
  }) => {
    const run = await cluster.start('drain-stopped', draining('10m'));
    const job = await run.runJob(countingJob(600));
    const { pod } = await run.listens();
    const log = await PodLog.follow(cluster.namespace, pod);
    await run.handle.signal(cancelSignal, { reason: 'now', mode: 'stop' });
    // Long before the ten minutes are over: this test would not see their end.
    expect(await run.ends()).toMatchObject({ outcome: 'aborted', cause: 'cancelled' });
    run.expectInterrupted(job);
    expect((await log.complete()).text).not.toContain('Process may finish within');
    expect(log.text).toContain('reason=cancelled');
  },
};

/** A pod that is deleted with an order knows it before its SIGTERM comes. How soon is printed. */
async function measureAnnouncements({ cluster: { namespace } }: EvictionWorld): Promise<void> {
  const { name: home, kubeConfig } = namespace;
  const compute = createKubernetesCompute({
    kubeConfig,
    namespace: home,
    installation: home,
    logger: { info: () => undefined, warn: () => undefined },
  });
  const volume = {
    name: 'info',
    downwardAPI: {
      items: [
        {
          path: 'stop-reason',
          fieldRef: { fieldPath: `metadata.annotations['${STOP_REASON_ANNOTATION}']` },
        },
      ],
    },
  };
  const script = `setInterval(() => { if (require('fs').readFileSync('/info/stop-reason', 'utf8') === 'cancelled') { console.log('shown'); process.exit(0); } }, 20);
    process.on('SIGTERM', () => { console.log('told to go'); process.exit(143); }); console.log('waiting');`;
  const times = await Promise.all(
    Array.from({ length: 8 }, async (_, index) => {
      const name = `announced-${index}`;
      await namespace.createPod(
        name,
        {
          image: 'holdfast.test/runner:1',
          command: ['node', '-e', script],
          volumeMounts: [{ name: 'info', mountPath: '/info' }],
        },
        { volumes: [volume] },
        { 'holdfast.dev/workflow-id': name },
      );
      const { metadata } = await namespace.waitForPod(
        name,
        ({ status }) => status?.phase === 'Running',
        120_000,
      );
      const log = await PodLog.follow(namespace, name);
      await log.says('waiting');
      const before = Date.now();
      await compute.deletePod(
        {
          name,
          uid: metadata?.uid ?? '',
          workflowId: name,
        },
        { stopReason: 'cancelled' },
      );
      const { text } = await log.complete();
      expect(text).toBe('waiting\nshown');
      return (await log.says('shown')).at - before;
    }),
  );
  await compute.close();
  process.stderr.write(
    `figures: a pod shows why it will be stopped after ${times.toSorted((a, b) => a - b).join(', ')} ms\n`,
  );
}

const others: Record<string, Scenario<EvictionWorld>> = {
  'a stop with a reason: the pod knows the reason before it is told to go': measureAnnouncements,

  'a workflow terminated by hand: what it left is found by its label': async ({ cluster }) => {
    const run = await cluster.start('abandoned');
    await run.listens();
    await run.handle.terminate('by hand');
    const { core, name: namespace } = cluster.namespace;
    const labelSelector = `${WORKFLOW_LABEL}=${run.handle.workflowId}`;
    const [pods, secrets] = await Promise.all([
      core.listNamespacedPod({ namespace, labelSelector }),
      core.listNamespacedSecret({ namespace, labelSelector }),
    ]);
    expect([pods.items.length, secrets.items.length]).toEqual([1, 1]);
    await core.deleteCollectionNamespacedPod({ namespace, labelSelector });
    await core.deleteCollectionNamespacedSecret({ namespace, labelSelector });
    await until(
      'its pod to be gone',
      async () => (await run.pods()).length === 0,
      () => '',
      60_000,
    );
    cluster.simulator.removeRunner(run.registrations()[0]?.id ?? 0);
  },
};

class EvictionWorld {
  readonly cluster: ClusterWorld;
  readonly volumes: HostPathVolumes;

  constructor(cluster: ClusterWorld) {
    this.cluster = cluster;
    this.volumes = new HostPathVolumes(cluster.namespace);
  }

  async close(): Promise<void> {
    await this.cluster.close();
    await this.volumes.remove();
  }
}

await describeWithLab('evictions', { temporal: true, nodes: 'kubelet' }, (lab) => {
  together(
    async () => new EvictionWorld(await ClusterWorld.open(lab, { claims: true })),
    { ...checkpoints, ...drains, ...others },
    {
      afterwards: {
        'nothing is left: no pod, Secret, registration or running workflow': async ({ cluster }) =>
          await cluster.expectNothingLeft(),
        'no token and no JIT config in any history, log or pod spec': async ({ cluster }) =>
          expect(await cluster.secretsInClear()).toEqual([]),
      },
    },
  );
});
