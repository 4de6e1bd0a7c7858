import { randomUUID } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { CoreV1Api, type V1Pod } from '@kubernetes/client-node';
import { Client, Connection } from '@temporalio/client';
import { loadKubeConfig } from '../../../activities/compute/kubernetes/kubeConfig.ts';
import { JOB_WORKFLOW, type JobInput, type JobResult } from '../../../core/contract/index.ts';
import { BUSYBOX_IMAGE, SUPERVISOR_IMAGE } from '../../lab/images/definitions.ts';
import { containerdSocket } from '../../lab/nodeFiles.ts';
import { resolveBinary } from '../../lab/resolve.ts';
import { readRecord } from '../../lab/store.ts';
import type { LocalBenchmark, LocalOptions, Measured } from '../benchmark.ts';
import { createNamespace } from '../namespace.ts';
import { withNode, type Node } from '../node.ts';
import { TaskTimes } from '../processes/taskTimes.ts';
import { WorkerProcess } from '../processes/workerProcess.ts';
import { percentile, roundTo } from '../statistics.ts';
import { StepPods, type StepTimes } from '../stepPods.ts';

/**
 * Number of steps of one job. Jobs alternate with as many pods of the script, so that other load
 * affects both equally.
 */
const STEPS = 5;
/**
 * Bounds of the random duration of a step (ms). The kubelet checks its containers once a second,
 * and steps end at any time between two checks. Every step is long enough for its log to be read.
 */
const STEP_MS = { least: 1_500, more: 1_000 } as const;

export const job: LocalBenchmark = {
  name: 'job',
  summary:
    'time that a job adds to its steps, in pods of a real kubelet, compared with a script that creates the same pods one after the other (--runs steps, in jobs of five; Linux, root)',
  defaultRuns: 20,
  figures: {
    steps: { unit: 'steps', what: 'steps of jobs, and pods of the script' },
    startOverheadP50Ms: {
      unit: 'ms',
      what: "a step's container started → its command's first line, median",
    },
    startOverheadP95Ms: { unit: 'ms', what: '… p95' },
    gapP50Ms: { unit: 'ms', what: "a step's command ended → the next step's pod exists, median" },
    gapP95Ms: { unit: 'ms', what: '… p95' },
    'floor.gapP50Ms': { unit: 'ms', what: '… of the script, median' },
    'floor.gapP95Ms': { unit: 'ms', what: '… of the script, p95' },
    'floor.times': {
      unit: '×',
      what: 'median gap of the jobs, relative to that of the script',
      budget: { kind: 'max', limit: 2 },
    },
  },

  async run(options): Promise<Measured> {
    return await withNode(options, async (node) => await measure(node, options), {
      temporal: true,
    });
  },
};

async function measure(node: Node, { runs, progress }: LocalOptions): Promise<Measured> {
  const { stateDir, kubeconfig, temporal } = node;
  const record = await readRecord(stateDir);
  if (record === undefined || temporal === undefined)
    throw new Error(`${stateDir}: contains no lab with Temporal`);
  const kubeConfig = loadKubeConfig({ path: kubeconfig });
  const core = kubeConfig.makeApiClient(CoreV1Api);
  const name = `bench-${randomUUID().slice(0, 8)}`;
  const logs = join(stateDir, 'logs');
  await mkdir(logs, { recursive: true });
  await createNamespace(core, name);
  const closers: (() => Promise<unknown>)[] = [
    async () => await core.deleteNamespace({ name, body: { gracePeriodSeconds: 0 } }),
  ];
  try {
    const tasks = new TaskTimes(await resolveBinary('ctr'), containerdSocket({ record }));
    closers.unshift(async () => await tasks.stop());
    const pods = await StepPods.open(kubeConfig, core, name, tasks);
    closers.unshift(async () => await pods.close());
    const connection = await Connection.connect({ address: temporal.address });
    closers.unshift(async () => await connection.close());
    const worker = new WorkerProcess({
      env: workerSettings(node, name),
      logFile: join(logs, 'worker.log'),
    });
    closers.unshift(async () => await worker.stop());
    await worker.ready();
    const client = new Client({ connection, namespace: temporal.namespace });
    const ofJobs: StepTimes[][] = [];
    const ofScript: StepTimes[][] = [];
    const runJob = async (id: string, steps: number): Promise<string[]> => {
      const result = (await client.workflow.execute(JOB_WORKFLOW, {
        workflowId: `${name}-${id}`,
        taskQueue: name,
        args: [jobOf(id, steps)],
      })) as JobResult;
      if (result.outcome !== 'succeeded') throw new Error(`job ${id}: ${result.message}`);
      return result.steps.map((step) => step.pod ?? '');
    };
    const timesOf = async (names: readonly string[]): Promise<StepTimes[]> =>
      await Promise.all(names.map(async (each) => await pods.times(each)));
    progress(
      'a job that is not measured: files are read from the disk, and the worker compiles its code',
    );
    await runJob('first', 2);
    for (let left = runs, number = 1; left > 0; left -= STEPS, number++) {
      const steps = Math.min(left, STEPS);
      progress(`${left} steps left: a job of ${steps}, then the script`);
      const names = await runJob(`job-${number}`, steps);
      ofJobs.push(await timesOf(names));
      ofScript.push(
        await timesOf(
          await runScript(
            core,
            pods,
            name,
            names.map((each) => pods.made(each)),
          ),
        ),
      );
    }
    return {
      figures: figuresOf(ofJobs, ofScript),
      details: { jobs: ofJobs.map(shown), script: ofScript.map(shown) },
    };
  } finally {
    for (const close of closers)
      await close().catch((error: unknown) => progress(`cleaning up: ${String(error)}`));
  }
}

function workerSettings({ kubeconfig, temporal }: Node, name: string): Record<string, string> {
  return {
    TEMPORAL_ADDRESS: temporal?.address ?? '',
    TEMPORAL_NAMESPACE: temporal?.namespace ?? '',
    HOLDFAST_TASK_QUEUE: name,
    HOLDFAST_INSTALLATION: name,
    HOLDFAST_COMPUTE: 'kubernetes',
    HOLDFAST_KUBECONFIG: kubeconfig,
    HOLDFAST_KUBERNETES_NAMESPACE: name,
    HOLDFAST_RUNNER_IMAGE: BUSYBOX_IMAGE,
    HOLDFAST_SUPERVISOR_IMAGE: SUPERVISOR_IMAGE,
    // Not used: steps are not runners of a CI server.
    HOLDFAST_GITHUB_TOKEN: 'ghp_none',
    HOLDFAST_SWEEP_INTERVAL: 'off',
    HOLDFAST_HTTP_ADDRESS: '127.0.0.1:0',
  };
}

function jobOf(name: string, steps: number): JobInput {
  const commands = (): string =>
    `echo up; sleep ${((STEP_MS.least + Math.random() * STEP_MS.more) / 1_000).toFixed(2)}`;
  return {
    name,
    test: Array.from({ length: steps }, (_, index) => ({
      name: `step-${index + 1}`,
      image: BUSYBOX_IMAGE,
      commands: commands(),
    })),
  };
}

/**
 * Runs the same pods by a script. It creates each pod when it sees the end of the previous one,
 * which it deletes.
 */
async function runScript(
  core: CoreV1Api,
  pods: StepPods,
  namespace: string,
  steps: readonly V1Pod[],
): Promise<string[]> {
  const names: string[] = [];
  const deletions: Promise<unknown>[] = [];
  for (const { metadata, spec } of steps) {
    const name = `bare-${metadata?.name}`;
    const { nodeName: _chosen, ...wanted } = spec ?? { containers: [] };
    await core.createNamespacedPod({ namespace, body: { metadata: { name }, spec: wanted } });
    await pods.ended(name);
    deletions.push(core.deleteNamespacedPod({ namespace, name }));
    names.push(name);
  }
  await Promise.all(deletions);
  return names;
}

const shown = (steps: readonly StepTimes[]) => ({
  gapMs: gaps(steps),
  startOverheadMs: steps.map(startOverhead),
  createdToFirstLineMs: steps.map(({ createdAt, firstLineAt }) => roundTo(firstLineAt - createdAt)),
});
const startOverhead = ({ startedAt, firstLineAt }: StepTimes): number =>
  roundTo(firstLineAt - startedAt);
const gaps = (steps: readonly StepTimes[]): number[] =>
  steps.slice(1).map(({ createdAt }, index) => createdAt - (steps[index]?.endedAt ?? Number.NaN));

function figuresOf(
  ofJobs: readonly StepTimes[][],
  ofScript: readonly StepTimes[][],
): Record<string, number> {
  const starts = ofJobs.flat().map(startOverhead);
  const [ours, floor] = [ofJobs.flatMap(gaps), ofScript.flatMap(gaps)];
  return {
    steps: starts.length,
    startOverheadP50Ms: percentile(starts, 0.5),
    startOverheadP95Ms: percentile(starts, 0.95),
    gapP50Ms: percentile(ours, 0.5),
    gapP95Ms: percentile(ours, 0.95),
    'floor.gapP50Ms': percentile(floor, 0.5),
    'floor.gapP95Ms': percentile(floor, 0.95),
    'floor.times': roundTo(percentile(ours, 0.5) / percentile(floor, 0.5), 2),
  };
}
