import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import { podName } from '../../activities/compute/naming.ts';
import {
  JOB_WORKFLOW,
  jobStatusQuery,
  type JobInput,
  type JobResult,
  type JobStatus,
} from '../../core/contract/index.ts';
import type { PodRequest, PodView, SupervisorRecord } from '../../core/domain/pod.ts';
import type { FakeCompute } from './fakeCompute.ts';
import type { MemoryWorld } from './memoryWorld.ts';
import { until } from './until.ts';

/** Returns a step whose command a test simulates. */
export const step = (name: string, more: object = {}): { name: string; commands: string } => ({
  name,
  commands: `echo ${name}`,
  ...more,
});

/** A job with all stages. */
export const THREE = {
  pre: [step('prepare')],
  test: [step('unit'), step('e2e')],
  post: [step('gather'), step('clean')],
};

/** Returns the state of each step, such as `unit aborted cancelled`. */
export const states = ({ steps }: Pick<JobResult, 'steps'>): string[] =>
  steps.map(({ name, state, outcome, cause }) =>
    [name, outcome ?? state, cause].filter(Boolean).join(' '),
  );

export const lines = ({ log }: Pick<JobResult, 'log'>): string[] =>
  log.map(({ message }) => message);

/** One job on the real Temporal server. A test controls the pods of its steps. */
export class JobRun {
  readonly id: string;
  readonly handle: WorkflowHandle;
  readonly #compute: FakeCompute;

  private constructor(id: string, handle: WorkflowHandle, compute: FakeCompute) {
    this.id = id;
    this.handle = handle;
    this.#compute = compute;
  }

  static async start(
    { world, compute }: MemoryWorld,
    input: Partial<JobInput>,
    workflowId = `job-${randomUUID().slice(0, 8)}`,
  ): Promise<JobRun> {
    const full = { name: 'web', test: [step('unit')], ...input };
    return new JobRun(
      workflowId,
      await world.client.workflow.start(JOB_WORKFLOW, {
        workflowId,
        taskQueue: world.taskQueue,
        args: [full],
      }),
      compute,
    );
  }

  /** Returns the job with this ID, which may not have started. */
  static of({ world, compute }: Pick<MemoryWorld, 'world' | 'compute'>, id: string): JobRun {
    return new JobRun(id, world.client.workflow.getHandle(id), compute);
  }

  result = async (): Promise<JobResult> => (await this.handle.result()) as JobResult;
  status = async (): Promise<JobStatus> => await this.handle.query(jobStatusQuery);

  async reaches(what: string, like: (status: JobStatus) => boolean): Promise<JobStatus> {
    let last: JobStatus | undefined;
    await until(
      `job to reach: ${what}`,
      async () => like((last = await this.status())),
      () => JSON.stringify(last),
    );
    return last as JobStatus;
  }

  /**
   * Returns the pod requests of a step, by attempt.
   * @param name - such as `test-1`
   */
  requests(name: string): PodRequest[] {
    return this.#compute.created.filter(
      ({ identity }) => identity.workflowId === `${this.id}-${name}`,
    );
  }

  /** Step of each pod, in the order of creation. */
  get made(): string[] {
    return this.#compute.created
      .filter(({ identity }) => identity.workflowId.startsWith(`${this.id}-`))
      .map(({ identity }) => identity.workflowId.slice(this.id.length + 1));
  }

  /** The pod of a step, once there is one. */
  async pod(name: string, attempt = 1): Promise<string> {
    await until(
      `a pod of ${name}`,
      () => this.requests(name).length >= attempt,
      () => this.made.join(),
    );
    return podName((this.requests(name)[attempt - 1] as PodRequest).identity);
  }

  /** Waits until the step's command runs and the job knows its pod. */
  async runs(name: string, attempt = 1): Promise<string> {
    const pod = await this.pod(name, attempt);
    commandStarts(this.#compute, pod);
    await this.reaches(`${name} in ${pod}`, ({ steps }) => steps.some((each) => each.pod === pod));
    return pod;
  }

  /** Lets the step's command run and end with this exit code. */
  async ends(
    name: string,
    code = 0,
    record: SupervisorRecord = {},
    more: Partial<PodView> = {},
  ): Promise<void> {
    const pod = await this.runs(name);
    commandEnds(this.#compute, pod, code, record, more);
  }
}

/** Lets the pod report the start and the end of its command, as with the supervisor. */
function commandStarts(compute: FakeCompute, pod: string): void {
  compute.change(pod, {
    scheduled: true,
    node: 'node-1',
    startedAt: new Date().toISOString(),
    online: true,
  });
}

export function commandEnds(
  compute: FakeCompute,
  pod: string,
  code = 0,
  record: SupervisorRecord = {},
  more: Partial<PodView> = {},
): void {
  compute.change(pod, { ended: true, exit: { code, oomKilled: false, record }, ...more });
}

/**
 * Starts each pod's command when the pod is created.
 * @param then - `end`: it exits with 0; `run`: it runs until it is stopped
 */
export function playsByItself(compute: FakeCompute, then: 'end' | 'run'): void {
  const create = compute.createPod.bind(compute);
  compute.createPod = async (request) => {
    const known = compute.created.length;
    const pod = await create(request);
    if (compute.created.length > known) {
      setImmediate(() => {
        commandStarts(compute, pod.name);
        if (then === 'end') commandEnds(compute, pod.name);
      });
    }
    return pod;
  };
}
