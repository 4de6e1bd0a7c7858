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

  /** One that somebody has started, or is about to. */
  static of(world: ClusterWorld, id: string): ClusterJob {
    return new ClusterJob(world, id, world.client.workflow.getHandle(id));
  }

  /** The pod of a step, once it has one. @param other - than this one */
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

  /** As `kubectl drain` does. */
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

  /** The log of a step, once its command has said that it is up. */
  async up(name: string): Promise<PodLog> {
    const log = await PodLog.follow(this.#world.namespace, await this.started(name));
    await log.says('up');
    return log;
  }

  async result(): Promise<JobResult> {
    return (await this.handle.result()) as JobResult;
  }

  /** The steps that ever had a pod, by their pods' creation, each as often as it had one. */
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
