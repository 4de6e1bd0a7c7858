import { expect } from '@jest/globals';
import type { V1Pod } from '@kubernetes/client-node';
import type { Client, WorkflowHandle } from '@temporalio/client';
import { WORKFLOW_ID_ANNOTATION } from '../../activities/compute/kubernetes/metadata.ts';
import type {
  RecordedRequest,
  SimulatedJob,
  SimulatedRegistration,
} from '../../tools/simulator/types.ts';
import type { Simulator } from '../../tools/simulator/simulator.ts';
import {
  podStateSignal,
  statusQuery,
  type RunnerResult,
  type RunnerStatus,
} from '../../core/contract/index.ts';
import type { NamespaceRecorder } from './namespaceRecorder.ts';
import { inContainer } from './podLog.ts';
import type { TestNamespace } from './pods.ts';
import { until } from './until.ts';

/**
 * Intervals that are short enough for tests on real pods. A table of its own tests those of
 * production.
 */
export const SHORT_INTERVALS = {
  busyRetry: '1s',
  busyCheck: '2s',
  absentCheck: '500ms',
  credentialsRetry: '1s',
  onlineCheck: '500ms',
  removalGrace: '20s',
  idleConfirmation: '3s',
  stopResponseTimeout: '5s',
  listMaxAge: '1s',
  lateCreationWindow: '5s',
} as const;

const TIMEOUT_MS = 300_000;

/**
 * Returns a job that prints its start, counts, and prints its end. If it is interrupted, it takes
 * three seconds to clean up.
 */
export function countingJob(seconds: number): string {
  return `trap 'echo interrupted; sleep 3; echo cleaned up; exit 1' INT TERM; echo begun; i=0; while [ $i -lt ${seconds} ]; do i=$((i+1)); sleep 1; echo second $i; done; echo finished`;
}

/**
 * A job that prints its start, counts until it is released, and prints its end. For tests in which
 * its duration does not matter.
 */
export const HELD_JOB = `trap 'echo interrupted; exit 1' INT TERM; echo begun; i=0; until [ -e /tmp/let-go ]; do i=$((i+1)); sleep 1; echo second $i; done; rm -f /tmp/let-go; echo finished`;

/** Lets the {@link HELD_JOB} of a runner's pod end. */
export async function letGo(namespace: TestNamespace, pod: string): Promise<void> {
  await inContainer(namespace, pod, 'touch /tmp/let-go');
}

/** The parts of a world that a run needs. */
interface World {
  readonly client: Client;
  readonly simulator: Simulator;
  readonly namespace: TestNamespace;
  readonly recorder: NamespaceRecorder;
}

/** One runner's workflow in a cluster's world. */
export class ClusterRun {
  readonly world: World;
  /** The runner's organization; its workflow is `runner-<key>`. */
  readonly key: string;
  readonly handle: WorkflowHandle;

  constructor(world: World, key: string, handle: WorkflowHandle) {
    this.world = world;
    this.key = key;
    this.handle = handle;
  }

  async status(): Promise<RunnerStatus> {
    return await this.handle.query(statusQuery);
  }

  /** Waits for a status that meets the condition. A query without a response is repeated. */
  async reaches(what: string, like: (status: RunnerStatus) => boolean): Promise<RunnerStatus> {
    let last: RunnerStatus | undefined;
    const look = async (): Promise<boolean> =>
      like(
        (last = await this.world.client.withDeadline(
          Date.now() + 5_000,
          async () => await this.status(),
        )),
      );
    await until(`${this.key} to reach: ${what}`, look, () => JSON.stringify(last), TIMEOUT_MS);
    return last as RunnerStatus;
  }

  async result(): Promise<RunnerResult> {
    return (await this.handle.result()) as RunnerResult;
  }

  /** Queues a job that only this runner can take. */
  queueJob(command: string): SimulatedJob {
    return this.world.simulator.queueJob({
      repo: `${this.key}/app`,
      labels: ['self-hosted'],
      command,
    });
  }

  /** The current job of the simulator. */
  job({ id }: { id: number }): SimulatedJob {
    const job = this.world.simulator.job(id);
    if (job === undefined) throw new Error(`no job ${id}`);
    return job;
  }

  /** Queues a job and waits for its first output, which comes from the pod. */
  async runJob(command: string): Promise<SimulatedJob> {
    const job = this.queueJob(command);
    await this.waitForLine(job, 'begun');
    return job;
  }

  /**
   * Returns the output of the job itself, without that of hooks and of the shell about a signal.
   */
  jobOutput(job: { id: number }): string[] {
    return this.job(job).output.filter(
      (line) =>
        !/^(A job (started|completed) hook has been configured|Run '\/|Terminated$)/.test(line),
    );
  }

  async waitForLine(job: { id: number }, line: string): Promise<void> {
    await this.world.simulator.waitFor(
      () => this.job(job).output.includes(line),
      `${this.key}'s job to say "${line}"`,
      TIMEOUT_MS,
    );
  }

  /** Waits until a counting job has run for this many more seconds. */
  async goesOn(job: { id: number }, seconds: number): Promise<void> {
    const last = this.job(job).output.findLast((line) => line.startsWith('second ')) ?? 'second 0';
    await this.waitForLine(job, `second ${Number(last.slice('second '.length)) + seconds}`);
  }

  /** Lets a {@link HELD_JOB} end. */
  async letGo(): Promise<void> {
    for (const { metadata } of await this.pods())
      await letGo(this.world.namespace, metadata?.name ?? '');
  }

  /** Checks that the job completed in one runner, which then got its end event. */
  expectUnharmed(job: { id: number }): void {
    const { conclusion, assignments, annotation } = this.job(job);
    const output = this.jobOutput(job);
    expect({ last: output.at(-1), interrupted: output.includes('interrupted'), conclusion, assignments, annotation }).toEqual({
      last: 'finished', interrupted: false, conclusion: 'success', assignments: 1, annotation: undefined,
    }); // prettier-ignore
  }

  /** The present pod, once its runner is registered and listening. */
  async listens(attempt = 1): Promise<RunnerStatus & { pod: string }> {
    const { simulator } = this.world;
    const status = await this.reaches(
      `runner ${attempt} listening`,
      ({ attempt: now, runnerName, pod, phase }) =>
        now === attempt &&
        pod !== undefined &&
        phase !== 'Registering' &&
        simulator.runner(runnerName)?.status === 'online',
    );
    return status as RunnerStatus & { pod: string };
  }

  async pods(): Promise<V1Pod[]> {
    const { core, name: namespace } = this.world.namespace;
    return (await core.listNamespacedPod({ namespace })).items.filter(
      ({ metadata }) => metadata?.annotations?.[WORKFLOW_ID_ANNOTATION] === this.handle.workflowId,
    );
  }

  /**
   * Checks a job whose pod was deleted by force. It depends on the kubelet whether the container
   * gets SIGTERM, and how much time: the job either cleaned up and reported, or was killed before.
   */
  expectForced(job: { id: number }): void {
    const { output, conclusion, annotation } = this.job(job);
    if (conclusion === 'cancelled') return this.expectInterrupted(job);
    expect({ finished: output.includes('finished'), conclusion }).toEqual({
      finished: false,
      conclusion: 'failure',
    });
    expect(annotation).toContain('lost communication');
  }

  /**
   * Checks that a removal which the CI server rejected, because the dead runner counts as busy, was
   * handed off to a workflow of its own. On a slow machine the job may have ended by then, so that
   * nothing was rejected.
   */
  expectHandOffIfRejected(result: RunnerResult): void {
    if (this.requests('DELETE', 422).length > 0)
      expect(result.deregistrationWorkflowId).toBe(`deregistration-${result.runnerName}`);
  }

  /** Checks that the job was interrupted and had time to clean up. */
  expectInterrupted(job: { id: number }): void {
    const { conclusion } = this.job(job);
    const output = this.jobOutput(job);
    expect({ end: output.slice(-2), conclusion }).toEqual({
      end: ['interrupted', 'cleaned up'],
      conclusion: 'cancelled',
    });
  }

  registrations(): SimulatedRegistration[] {
    return this.world.simulator.runners().filter(({ scope }) => scope === `orgs/${this.key}`);
  }

  /** Requests to the CI server about this runner, by method and, where given, by status. */
  requests(method: string, status?: number): RecordedRequest[] {
    const mine = this.world.simulator
      .requests()
      .filter(({ path }) => path.startsWith(`/orgs/${this.key}/`));
    return mine.filter(
      (request) =>
        request.endpoint.startsWith(`${method} `) &&
        (status === undefined || request.status === status),
    );
  }

  /** Returns the states that signals reported to the workflow, pod by pod. */
  async podStates(): Promise<string[]> {
    const { events } = await this.handle.fetchHistory();
    const signals = (events ?? [])
      .map((event) => event.workflowExecutionSignaledEventAttributes)
      .filter((signal) => signal?.signalName === podStateSignal.name);
    return signals.map((signal) =>
      Buffer.from(signal?.input?.payloads?.[0]?.data ?? []).toString(),
    );
  }

  /** Returns the UIDs of all pods of this workflow. */
  podsEver(): string[] {
    return this.world.recorder.podsOf(this.handle.workflowId);
  }

  /** Returns the number of registrations that were ever created for this workflow. */
  registeredEver(): number {
    return this.requests('POST', 201).length;
  }

  async drain(reason = 'test'): Promise<void> {
    await this.handle.executeUpdate('drain', { args: [{ reason }] });
  }

  async deletePod(name: string, gracePeriodSeconds: number): Promise<void> {
    const { core, name: namespace } = this.world.namespace;
    await core.deleteNamespacedPod({ name, namespace, gracePeriodSeconds });
  }

  async evict(name: string): Promise<void> {
    const { core, name: namespace } = this.world.namespace;
    await core.createNamespacedPodEviction({
      name,
      namespace,
      body: { metadata: { name, namespace } },
    });
  }

  /**
   * Returns the result. At that time nothing of the runner may be left except a registration that
   * was handed off, whose removal is awaited.
   */
  async ends(): Promise<RunnerResult> {
    const result = await this.result();
    const { core, name: namespace } = this.world.namespace;
    const secrets = (await core.listNamespacedSecret({ namespace })).items.filter(
      ({ metadata }) => metadata?.annotations?.[WORKFLOW_ID_ANNOTATION] === this.handle.workflowId,
    );
    expect({
      pods: (await this.pods()).map(({ metadata }) => metadata?.name),
      secrets: secrets.map(({ metadata }) => metadata?.name),
    }).toEqual({ pods: [], secrets: [] });
    await until(`the last of ${this.key}'s pods to be recorded`, () =>
      this.world.recorder.sawAllGo(this.handle.workflowId),
    );
    if (result.deregistrationWorkflowId !== undefined) {
      const removal = await this.world.client.workflow
        .getHandle(result.deregistrationWorkflowId)
        .result();
      expect(removal).toMatchObject({ outcome: expect.stringMatching(/^(removed|absent)$/) });
    }
    expect(this.registrations()).toEqual([]);
    return result;
  }
}
