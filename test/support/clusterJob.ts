import { randomUUID } from 'node:crypto';
import type { V1Pod } from '@kubernetes/client-node';
import type { WorkflowHandle } from '@temporalio/client';
import { WORKFLOW_LABEL } from '../../activities/compute/kubernetes/metadata.ts';
import {
  JOB_WORKFLOW,
  jobStatusQuery,
  type JobInput,
  type JobResult,
  type JobStatus,
} from '../../core/contract/index.ts';
import type { ClusterWorld } from './clusterWorld.ts';
import { PodLog } from './podLog.ts';
import { until } from './until.ts';

/** One job in real pods. */
export class ClusterJob {
  readonly id: string;
  readonly handle: WorkflowHandle;
  readonly #world: ClusterWorld;

  private constructor(world: ClusterWorld, id: string, handle: WorkflowHandle) {
    this.#world = world;
    this.id = id;
    this.handle = handle;
  }

  static async start(
    world: ClusterWorld,
    name: string,
    input: Omit<JobInput, 'name'>,
  ): Promise<ClusterJob> {
    const id = `job-${name}-${randomUUID().slice(0, 6)}`;
    return new ClusterJob(
      world,
      id,
      await world.client.workflow.start(JOB_WORKFLOW, {
        workflowId: id,
        taskQueue: world.taskQueue,
        args: [{ name, ...input }],
      }),
    );
  }

  /** Returns the job with this ID, which may not have started. */
  static of(world: ClusterWorld, id: string): ClusterJob {
    return new ClusterJob(world, id, world.client.workflow.getHandle(id));
  }

  /**
   * Returns the pod of a step as soon as it has one.
   * @param other - pod to ignore
   */
  async pod(name: string, other?: string): Promise<string> {
    let pod: string | undefined;
    let last: JobStatus | undefined;
    const look = async (): Promise<boolean> => {
      last = await this.#world.client.withDeadline(
        Date.now() + 5_000,
        async () => await this.handle.query(jobStatusQuery),
      );
      pod = last.steps.find((each) => each.name === name)?.pod;
      return pod !== undefined && pod !== other;
    };
    await until(`a pod of ${name}`, look, () => JSON.stringify(last), 120_000);
    return pod ?? '';
  }

  /** Evicts a pod, like `kubectl drain`. */
  async evict(pod: string): Promise<void> {
    const { core, name: namespace } = this.#world.namespace;
    await core.createNamespacedPodEviction({
      name: pod,
      namespace,
      body: { metadata: { name: pod, namespace } },
    });
  }

  /** The pod of a step, once its container has started. */
  async started(name: string): Promise<string> {
    const pod = await this.pod(name);
    await this.#world.namespace.waitForPod(
      pod,
      ({ status }) =>
        status?.containerStatuses?.some(
          (each) => each.name === 'runner' && each.state?.waiting === undefined,
        ) === true,
      120_000,
    );
    return pod;
  }

  /** Returns the log of a step as soon as its command has started. */
  async up(name: string): Promise<PodLog> {
    const log = await PodLog.follow(this.#world.namespace, await this.started(name));
    await log.says('up');
    return log;
  }

  async result(): Promise<JobResult> {
    return (await this.handle.result()) as JobResult;
  }

  /** Returns the step of each pod, in the order of creation. */
  pods(): string[] {
    const pods = new Map(
      this.#world.recorder.podVersions
        .map((version) => JSON.parse(version) as V1Pod)
        .map(({ metadata }) => [metadata?.uid, metadata?.labels?.[WORKFLOW_LABEL] ?? '']),
    );
    return [...pods.values()]
      .filter((workflowId) => workflowId.startsWith(`${this.id}-`))
      .map((workflowId) => workflowId.slice(this.id.length + 1));
  }
}
