/** Finds, starts, changes and ends the sets of RunnerSet resources in Temporal. */
import {
  WorkflowFailedError,
  type Client,
  type WorkflowExecutionDescription,
} from '@temporalio/client';
import {
  TerminatedFailure,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
} from '@temporalio/common';
import { z } from 'zod';
import { querySetStatus } from '../../activities/runnerSet/querySetStatus.ts';
import { terminationText } from '../../activities/shared/terminationText.ts';
import {
  RUNNER_SET_WORKFLOW,
  SET_COMMAND_WORKFLOW,
  SET_DELETION_MEMO,
  SET_RESOURCE_MEMO,
  setDeclarationQuery,
  setWorkflowId,
  type RunnerSetInput,
  type RunnerSetStatus,
  type RunnerSetRef,
} from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { runningSetsQuery } from '../../core/domain/visibility.ts';
import { isOpen } from '../../core/domain/workflowStatus.ts';
import type { SetSpec } from '../../core/input/runnerSet.ts';
import { pauseInfo, type PauseInfo } from '../temporal/pauseInfo.ts';
import { setCommandOptions } from '../temporal/setCommand.ts';
import { setStartOptions } from '../temporal/setStart.ts';

/** Options of {@link SetWorkflows}. */
export interface SetWorkflowsOptions {
  /**
   * Returns the current client.
   * @throws Error if there is no connection to Temporal
   */
  readonly client: () => Client;
  readonly taskQueue: string;
}

/** State of a set in Temporal. */
export type FoundSet =
  | { readonly state: 'absent' }
  | {
      readonly state: 'ended';
      readonly resource: RunnerSetRef | undefined;
      readonly message: string;
      readonly failed: boolean;
      readonly closedAt: number;
    }
  | {
      readonly state: 'running';
      readonly resource: RunnerSetRef | undefined;
      /** First run ID of the running set. It distinguishes the set from others of the same name. */
      readonly chain: string;
      readonly taskQueue: string;
      /** Pause of its workflow in Temporal. A paused workflow answers no query. */
      readonly paused?: PauseInfo;
      /** Result of the queries. `undefined` if no worker has answered. */
      readonly declaration:
        { readonly status: RunnerSetStatus; readonly declaration: RunnerSetInput } | undefined;
    };

/** Deadline of a query (ms). A set without a worker must not delay the others. */
const QUERY_DEADLINE_MS = 3_000;
/** Deadline of a command to a set that answers queries (ms). */
const COMMAND_DEADLINE_MS = 15_000;

const resourceMemo = z.object({
  namespace: z.string(),
  name: z.string(),
  uid: z.string(),
  cluster: z.string().optional(),
});
/** Returns the RunnerSet resource in the memo of a set, or `undefined` if it has none. */
export function resourceOf(memo: Record<string, unknown> | undefined): RunnerSetRef | undefined {
  const { data } = resourceMemo.safeParse(memo?.[SET_RESOURCE_MEMO]);
  return data && omitUndefined(data);
}

/** Namespace of a cluster with RunnerSet resources. */
export interface ResourceNamespace {
  /** See {@link RunnerSetRef.cluster}. */
  readonly cluster: string;
  readonly namespace: string;
}

/** Returns whether a resource was, or may have been, in a namespace of a cluster. */
export const isResourceIn = (
  resource: RunnerSetRef,
  { cluster, namespace }: ResourceNamespace,
): boolean => resource.namespace === namespace && (resource.cluster ?? cluster) === cluster;

/** The sets of RunnerSet resources in Temporal: finds, starts, changes and ends them. */
export class SetWorkflows {
  readonly #options: SetWorkflowsOptions;

  constructor(options: SetWorkflowsOptions) {
    this.#options = options;
  }

  /**
   * Returns the state of a set.
   * @throws the error of the Temporal client if Temporal does not answer
   */
  async find(name: string): Promise<FoundSet> {
    const described = await this.#describe(name);
    if (described === undefined || described.type !== RUNNER_SET_WORKFLOW)
      return { state: 'absent' };
    const { memo, status, taskQueue, raw } = described;
    const resource = resourceOf(memo);
    if (isOpen(status)) {
      const paused = pauseInfo(described);
      return {
        state: 'running',
        resource,
        chain: raw.workflowExecutionInfo?.firstRunId ?? '',
        taskQueue,
        declaration:
          paused === undefined && taskQueue === this.#options.taskQueue
            ? await this.#ask(name)
            : undefined,
        ...omitUndefined({ paused }),
      };
    }
    return {
      state: 'ended',
      resource,
      closedAt: described.closeTime?.getTime() ?? 0,
      ...(memo?.[SET_DELETION_MEMO] === undefined
        ? await this.#endOf(described)
        : { message: 'the set was deleted', failed: false }),
    };
  }

  /** Returns the names of running sets that resources of this namespace created. */
  async namesOf(place: ResourceNamespace): Promise<string[]> {
    const names: string[] = [];
    for await (const { memo } of this.#options
      .client()
      .workflow.list({ query: runningSetsQuery(this.#options.taskQueue), pageSize: 1_000 })) {
      const resource = resourceOf(memo);
      if (resource !== undefined && isResourceIn(resource, place)) names.push(resource.name);
    }
    return names;
  }

  /**
   * Starts the workflow of a set.
   * @throws WorkflowExecutionAlreadyStartedError if another client started it first
   */
  async start(input: RunnerSetInput, spec: SetSpec, resource: RunnerSetRef): Promise<void> {
    const { client, taskQueue } = this.#options;
    const { memo, ...options } = setStartOptions(input, spec, taskQueue);
    await client().workflow.start(RUNNER_SET_WORKFLOW, {
      ...options,
      memo: { ...memo, [SET_RESOURCE_MEMO]: resource },
    });
  }

  /**
   * Changes a running set.
   * @throws WorkflowFailedError if the set rejects the change or does not answer
   */
  async apply(input: RunnerSetInput): Promise<void> {
    const client = this.#options.client();
    await client.withDeadline(
      Date.now() + COMMAND_DEADLINE_MS,
      async () =>
        await client.workflow.execute(
          SET_COMMAND_WORKFLOW,
          setCommandOptions(
            input.name,
            { command: 'apply', declaration: input },
            this.#options.taskQueue,
          ),
        ),
    );
  }

  /**
   * Requests the end of a set. Temporal keeps the command until the set accepts it, and delivers it
   * once. It does not apply to a later set of the same name.
   * @param chain - see {@link FoundSet}
   */
  async end(name: string, chain: string, reason: string): Promise<void> {
    const { client, taskQueue } = this.#options;
    try {
      await client().workflow.start(SET_COMMAND_WORKFLOW, {
        ...setCommandOptions(name, { command: 'drain', reason }, taskQueue, chain),
        workflowIdReusePolicy: 'ALLOW_DUPLICATE_FAILED_ONLY',
      });
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    }
  }

  async #describe(name: string): Promise<WorkflowExecutionDescription | undefined> {
    try {
      return await this.#handle(name).describe();
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return undefined;
      throw error;
    }
  }

  async #ask(
    name: string,
  ): Promise<{ status: RunnerSetStatus; declaration: RunnerSetInput } | undefined> {
    const client = this.#options.client();
    try {
      return await client.withDeadline(Date.now() + QUERY_DEADLINE_MS, async () => {
        const [status, declaration] = await Promise.all([
          querySetStatus(client, setWorkflowId(name), { max: 0 }),
          this.#handle(name).query(setDeclarationQuery),
        ]);
        return { status, declaration };
      });
    } catch {
      return undefined; // the resource's status says so
    }
  }

  async #endOf({
    workflowId,
    runId,
  }: WorkflowExecutionDescription): Promise<{ message: string; failed: boolean }> {
    try {
      await this.#options.client().workflow.getHandle(workflowId, runId).result();
      return { message: 'the set was ended, and its runners have left', failed: false };
    } catch (error) {
      if (!(error instanceof WorkflowFailedError)) throw error;
      const { cause } = error;
      if (cause instanceof TerminatedFailure) {
        const how = await terminationText(this.#options.client(), { workflowId, runId });
        return {
          message: `the workflow of the set ${how}; the set had not been deleted`,
          failed: true,
        };
      }
      return { message: `the set failed: ${cause?.message ?? error.message}`, failed: true };
    }
  }

  #handle(name: string): ReturnType<Client['workflow']['getHandle']> {
    return this.#options.client().workflow.getHandle(setWorkflowId(name));
  }
}
