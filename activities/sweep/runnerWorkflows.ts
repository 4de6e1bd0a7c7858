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
import type { ServedLocation } from '../../core/domain/location.ts';
import type { CredentialScope } from '../../core/input/sweep.ts';
import type { OwnerWorkflow, RunnerWorkflow } from '../../core/sweep/facts.ts';
import { temporalNamespaceId } from '../shared/temporalNamespace.ts';
import { podName, runnerHash, workflowIdInPodName } from '../compute/naming.ts';

/** How long one look may take, its retries included, in ms. */
const CHECK_INTERVAL_MS = 10_000;
const LIST_MS = 60_000;
const PING_MS = 5_000;
/** Scopes of ended runners that are looked for. */
const MAX_SCOPES = 200;
/** A name is used by one life, which may have had several runs. */
const MAX_NAMESAKES = 5;
/** Runners of one life, one after the other. */
const MAX_ATTEMPTS = 1_000;

/** How a life has ended, by the status of its workflow; all others run. */
const ENDED: Readonly<Record<string, OwnerWorkflow>> = {
  COMPLETED: { state: 'finished', how: 'has ended' },
  CANCELLED: { state: 'finished', how: 'was cancelled' },
  FAILED: { state: 'broken off', how: 'has failed' },
  TIMED_OUT: { state: 'broken off', how: 'has timed out' },
};

/** Of a runner's input, as somebody wrote it: what the sweep goes by. */
const writtenInput = z.object({
  organization: z.string().exactOptional(),
  repository: z.string().exactOptional(),
  enterprise: z.string().exactOptional(),
  credential: z.string().exactOptional(),
  onEviction: z.string().exactOptional(),
});

/** What a life was started with. */
export interface RunnerWorkflowInput {
  /** Absent: a plain command. */
  readonly at?: CredentialScope;
  /** Another runner takes the place of one that is lost. */
  readonly replacesLost: boolean;
}

/** The lives of one place, by Temporal's own word. */
export class RunnerWorkflows {
  readonly #client: Client;
  readonly #served: ServedLocation;

  constructor(client: Client, served: ServedLocation) {
    this.#client = client;
    this.#served = served;
  }

  /** @throws where Temporal does not answer: soon, whatever it would take a list to give up */
  async answers(): Promise<void> {
    await this.#within(PING_MS, async () => await this.#client.workflowService.getSystemInfo({}));
  }

  /** ID of the Temporal namespace that they are in. */
  async namespaceId(): Promise<string> {
    return await this.#within(PING_MS, async () => await temporalNamespaceId(this.#client));
  }

  /** By visibility, which may be late: an absence counts only once {@link life} says so. */
  async running(): Promise<WorkflowExecutionInfo[]> {
    return await this.#list(`${runnersInQuery(this.#served)} AND ExecutionStatus = 'Running'`);
  }

  /** Temporal has a record of some life of this place. */
  async locationKnown(): Promise<boolean> {
    return (await this.#list(runnersInQuery(this.#served), 1)).length > 0;
  }

  /**
   * Is, or was, a runner of that name one of this place? What lists say of a life may be made up by whoever may start a workflow; the hash in a
   * runner's name is that of a life's ids, which nobody can choose.
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
   * The runner whose pod has, or had, that name. The hash in it is that of a life's ids, which nobody can choose. It cannot be told of a workflow id with
   * characters that no pod's name has, or one that is too long for a pod's name.
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

  /** Does a life have a runner of that name now, at whichever place? By visibility. */
  async runs(name: string): Promise<boolean> {
    return (
      (
        await this.#list(
          `WorkflowType = ${quoteLiteral(RUNNER_WORKFLOW)} AND ExecutionStatus = 'Running' AND ${SEARCH_ATTRIBUTES.name.name} = ${quoteLiteral(name)}`,
          1,
        )
      ).length > 0
    );
  }

  /** Ids and task queues of the running removals of registrations. */
  async deregistrations(): Promise<{ workflowId: string; taskQueue: string }[]> {
    return (await this.#list(runningDeregistrationsQuery())).map(({ workflowId, taskQueue }) => ({
      workflowId,
      taskQueue,
    }));
  }

  /** One life of each scope that Temporal knows of at this place, running or ended. Each costs a request, however many lives there were. */
  async oneOfEachScope(): Promise<{ workflowId: string; runId: string; scope: string }[]> {
    const found: { workflowId: string; runId: string; scope: string }[] = [];
    const { name } = SEARCH_ATTRIBUTES.scope;
    for (;;) {
      const others =
        found.length === 0
          ? ''
          : ` AND ${name} NOT IN (${found.map(({ scope }) => quoteLiteral(scope)).join(', ')})`;
      const [life] = await this.#list(
        `${runnersInQuery(this.#served)} AND ${name} IS NOT NULL${others}`,
        1,
      );
      const scope = life?.typedSearchAttributes.get(SEARCH_ATTRIBUTES.scope);
      if (life === undefined || scope === undefined || found.length >= MAX_SCOPES) return found;
      found.push({ workflowId: life.workflowId, runId: life.runId, scope });
    }
  }

  /** What has become of a life. Another one that has its workflow id now is not it. */
  async life({
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

  /** What has become of the job that started a life. @returns nothing where what started it is no job, or forgotten */
  async job(workflowId: string): Promise<RunnerWorkflow['job']> {
    const latest = await this.describe(workflowId);
    return latest?.type === JOB_WORKFLOW
      ? { workflowId, ...(await this.#factsOf(latest)) }
      : undefined;
  }

  /** `undefined`: there is no such workflow. @param runId - default: the latest */
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

  /** What a run was started with; `undefined` where there is no record of it, or no reading it. */
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
      payloads = await codec.decode(payloads);
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

  async #howTerminated({ workflowId, runId }: WorkflowExecutionDescription): Promise<string> {
    const { namespace } = this.#client.options;
    const { history } = await this.#within(
      CHECK_INTERVAL_MS,
      async () =>
        await this.#client.workflowService.getWorkflowExecutionHistoryReverse({
          namespace,
          execution: { workflowId, runId },
          maximumPageSize: 1,
        }),
    );
    const { reason, identity } =
      history?.events?.[0]?.workflowExecutionTerminatedEventAttributes ?? {};
    return `was terminated${identity ? ` by ${identity}` : ''}${reason ? `: ${reason}` : ''}`;
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
