import {
  WorkflowNotFoundError,
  type Client,
  type WorkflowExecutionDescription,
  type WorkflowExecutionInfo,
} from '@temporalio/client';
import { z } from 'zod';
import { JOB_WORKFLOW, RUNNER_WORKFLOW, SEARCH_ATTRIBUTES } from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import {
  quoteLiteral,
  runnersInQuery,
  runningDeregistrationsQuery,
} from '../../core/domain/visibility.ts';
import { DEFAULT_CREDENTIAL, resolveScope } from '../../core/input/fields.ts';
import type { RunnerIdentity } from '../../core/domain/pod.ts';
import { parseRunnerNameHash } from '../../core/domain/runnerName.ts';
import { OPEN_FILTER } from '../../core/domain/workflowStatus.ts';
import type { ServedLocation } from '../../core/domain/location.ts';
import type { CredentialScope } from '../../core/input/sweep.ts';
import type { OwnerWorkflow, RunnerWorkflow } from '../../core/sweep/facts.ts';
import { temporalNamespaceId } from '../shared/temporalNamespace.ts';
import { terminationText } from '../shared/terminationText.ts';
import { podName, runnerHash, workflowIdInPodName } from '../compute/naming.ts';

/** Deadline of one request, its retries included (ms). */
const CHECK_INTERVAL_MS = 10_000;
const LIST_MS = 60_000;
const PING_MS = 5_000;
/** Maximum number of scopes returned. */
const MAX_SCOPES = 200;
/** Maximum runs per runner name. A name belongs to one workflow, which may have several runs. */
const MAX_NAMESAKES = 5;
/** Maximum attempts of one runner workflow. */
const MAX_ATTEMPTS = 1_000;

/** End states by workflow status. All other statuses count as running. */
const ENDED: Readonly<Record<string, OwnerWorkflow>> = {
  COMPLETED: { state: 'finished', how: 'has ended' },
  CANCELLED: { state: 'finished', how: 'was cancelled' },
  FAILED: { state: 'broken off', how: 'has failed' },
  TIMED_OUT: { state: 'broken off', how: 'has timed out' },
};

/** The fields of a runner's input that the sweep reads. */
const writtenInput = z.object({
  organization: z.string().exactOptional(),
  repository: z.string().exactOptional(),
  enterprise: z.string().exactOptional(),
  credential: z.string().exactOptional(),
  onEviction: z.string().exactOptional(),
});

/** Input of a runner workflow. */
export interface RunnerWorkflowInput {
  /** Scope and credential of the registration. Absent for a container step. */
  readonly at?: CredentialScope;
  /** Whether another runner replaces a lost one. */
  readonly replacesLost: boolean;
}

/** Reads the runner workflows of one location from Temporal. */
export class RunnerWorkflows {
  readonly #client: Client;
  readonly #served: ServedLocation;

  constructor(client: Client, served: ServedLocation) {
    this.#client = client;
    this.#served = served;
  }

  /**
   * Checks that Temporal answers.
   * @throws an error within 5 seconds if it does not
   */
  async answers(): Promise<void> {
    await this.#within(PING_MS, async () => await this.#client.workflowService.getSystemInfo({}));
  }

  /** Returns the ID of the Temporal namespace of the workflows. */
  async namespaceId(): Promise<string> {
    return await this.#within(PING_MS, async () => await temporalNamespaceId(this.#client));
  }

  /**
   * Returns the open workflows from visibility, which may lag. A missing workflow has ended only
   * if {@link owner} confirms it.
   */
  async running(): Promise<WorkflowExecutionInfo[]> {
    return await this.#list(`${runnersInQuery(this.#served)} AND ${OPEN_FILTER}`);
  }

  /** Returns whether Temporal has a record of any runner workflow of this location. */
  async locationKnown(): Promise<boolean> {
    return (await this.#list(runnersInQuery(this.#served), 1)).length > 0;
  }

  /**
   * Returns whether a runner with this name belongs, or belonged, to this location. Search
   * attributes can be forged by anyone who can start a workflow. The hash in the name is computed
   * from workflow and run IDs, which no client can choose.
   */
  async knowsRunner(name: string): Promise<boolean> {
    for (const { workflowId, runId } of await this.#list(
      `${runnersInQuery(this.#served)} AND ${SEARCH_ATTRIBUTES.name.name} = ${quoteLiteral(name)}`,
      MAX_NAMESAKES,
    )) {
      const firstRunId = (await this.describe(workflowId, runId))?.raw.workflowExecutionInfo
        ?.firstRunId;
      if (runnerHash({ workflowId, firstRunId: firstRunId || runId }) === parseRunnerNameHash(name))
        return true;
    }
    return false;
  }

  /**
   * Returns the runner whose pod has, or had, this name. The hash in the name is computed from
   * workflow and run IDs, which no client can choose.
   * @returns `undefined` if there is none, or if its workflow ID is too long for a pod name or has
   * characters that pod names exclude
   */
  async runnerOfPod(name: string): Promise<RunnerIdentity | undefined> {
    const workflowId = workflowIdInPodName(name);
    const latest = workflowId === undefined ? undefined : await this.describe(workflowId);
    if (workflowId === undefined || latest?.type !== RUNNER_WORKFLOW) return undefined;
    const firstRunId = latest.raw.workflowExecutionInfo?.firstRunId || latest.runId;
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
      if (podName({ workflowId, firstRunId, attempt }) === name)
        return { workflowId, firstRunId, attempt };
    }
    return undefined;
  }

  /**
   * Returns whether an open workflow has a runner with this name, at any location. Read from
   * visibility.
   */
  async runs(name: string): Promise<boolean> {
    return (
      (
        await this.#list(
          `WorkflowType = ${quoteLiteral(RUNNER_WORKFLOW)} AND ${OPEN_FILTER} AND ${SEARCH_ATTRIBUTES.name.name} = ${quoteLiteral(name)}`,
          1,
        )
      ).length > 0
    );
  }

  /** Returns the IDs and task queues of running workflows that remove registrations. */
  async deregistrations(): Promise<{ workflowId: string; taskQueue: string }[]> {
    return (await this.#list(runningDeregistrationsQuery())).map(({ workflowId, taskQueue }) => ({
      workflowId,
      taskQueue,
    }));
  }

  /**
   * Returns one runner workflow of each scope known at this location, running or ended. Each scope
   * costs one request.
   */
  async oneOfEachScope(): Promise<{ workflowId: string; runId: string; scope: string }[]> {
    const found: { workflowId: string; runId: string; scope: string }[] = [];
    const { name } = SEARCH_ATTRIBUTES.scope;
    for (;;) {
      const others =
        found.length === 0
          ? ''
          : ` AND ${name} NOT IN (${found.map(({ scope }) => quoteLiteral(scope)).join(', ')})`;
      const [runner] = await this.#list(
        `${runnersInQuery(this.#served)} AND ${name} IS NOT NULL${others}`,
        1,
      );
      const scope = runner?.typedSearchAttributes.get(SEARCH_ATTRIBUTES.scope);
      if (runner === undefined || scope === undefined || found.length >= MAX_SCOPES) return found;
      found.push({ workflowId: runner.workflowId, runId: runner.runId, scope });
    }
  }

  /**
   * Returns the state of a runner workflow. Another workflow that reuses the workflow ID does not
   * count as it.
   */
  async owner({
    workflowId,
    firstRunId,
  }: Pick<RunnerIdentity, 'workflowId' | 'firstRunId'>): Promise<OwnerWorkflow> {
    const latest = await this.describe(workflowId);
    if (latest === undefined) return { state: 'unknown', how: 'is not known to Temporal' };
    const first = latest.raw.workflowExecutionInfo?.firstRunId;
    if (first && first !== firstRunId)
      return { state: 'broken off', how: 'has ended, and another run has its id' };
    return await this.#factsOf(latest);
  }

  /**
   * Returns the state of the job workflow that started a runner workflow.
   * @returns `undefined` if the parent is not a job or no longer known
   */
  async job(workflowId: string): Promise<RunnerWorkflow['job']> {
    const latest = await this.describe(workflowId);
    return latest?.type === JOB_WORKFLOW
      ? { workflowId, ...(await this.#factsOf(latest)) }
      : undefined;
  }

  /**
   * Returns the description of a workflow.
   * @param runId - @default the latest run
   * @returns `undefined` if there is no such workflow
   */
  async describe(
    workflowId: string,
    runId?: string,
  ): Promise<WorkflowExecutionDescription | undefined> {
    try {
      return await this.#within(
        CHECK_INTERVAL_MS,
        async () => await this.#client.workflow.getHandle(workflowId, runId).describe(),
      );
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return undefined;
      throw error;
    }
  }

  /**
   * Returns the input of a run.
   * @returns `undefined` if there is no record of it or it has an unknown format
   */
  async input({
    workflowId,
    runId,
  }: {
    readonly workflowId: string;
    readonly runId: string;
  }): Promise<RunnerWorkflowInput | undefined> {
    const { namespace, loadedDataConverter } = this.#client.options;
    const { history } = await this.#within(
      CHECK_INTERVAL_MS,
      async () =>
        await this.#client.workflowService.getWorkflowExecutionHistory({
          namespace,
          execution: { workflowId, runId },
          maximumPageSize: 1,
        }),
    );
    let payloads = [
      ...(history?.events?.[0]?.workflowExecutionStartedEventAttributes?.input?.payloads ?? []),
    ];
    for (const codec of [...loadedDataConverter.payloadCodecs].reverse())
      payloads = await codec.decode(payloads, { type: 'workflow', namespace, workflowId });
    const [first] = payloads;
    const { data } = writtenInput.safeParse(
      first === undefined ? undefined : loadedDataConverter.payloadConverter.fromPayload(first),
    );
    if (data === undefined) return undefined;
    const isNamed =
      data.organization !== undefined ||
      data.repository !== undefined ||
      data.enterprise !== undefined;
    return {
      replacesLost: data.onEviction === 'resume' || data.onEviction === 'replace',
      ...(isNamed
        ? { at: { scope: resolveScope(data), credential: data.credential ?? DEFAULT_CREDENTIAL } }
        : {}),
    };
  }

  async #factsOf(latest: WorkflowExecutionDescription): Promise<OwnerWorkflow> {
    const closed = omitUndefined({ closedAtMs: latest.closeTime?.getTime() });
    if (latest.status.name === 'TERMINATED')
      return { ...closed, state: 'broken off', how: await this.#howTerminated(latest) };
    const ended = ENDED[latest.status.name];
    return ended === undefined ? { state: 'running' } : { ...closed, ...ended };
  }

  async #howTerminated(run: WorkflowExecutionDescription): Promise<string> {
    return await this.#within(
      CHECK_INTERVAL_MS,
      async () => await terminationText(this.#client, run),
    );
  }

  async #list(query: string, max = Number.POSITIVE_INFINITY): Promise<WorkflowExecutionInfo[]> {
    return await this.#within(LIST_MS, async () => {
      const found: WorkflowExecutionInfo[] = [];
      for await (const each of this.#client.workflow.list({
        query,
        pageSize: Math.min(max, 1_000),
      })) {
        found.push(each);
        if (found.length >= max) break;
      }
      return found;
    });
  }

  async #within<T>(ms: number, run: () => Promise<T>): Promise<T> {
    return await this.#client.withDeadline(Date.now() + ms, run);
  }
}
