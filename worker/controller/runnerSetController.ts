/**
 * Reconciles sets with RunnerSet resources, and the status of the resources with the sets. It is
 * level-triggered and keeps no essential state. It may stop at any time and may run in every worker
 * at once, because each step is idempotent. It uses no finalizer: a resource is deleted
 * immediately, even while no worker runs, and the next reconciliation drains its set.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { ApplicationFailure, WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import { WorkflowFailedError } from '@temporalio/client';
import pMap from 'p-map';
import type { Logger } from 'pino';
import { scheduleError } from '../../activities/runnerSet/schedules.ts';
import { FAILURE_TYPES } from '../../core/activities/index.ts';
import type { RunnerSetInput } from '../../core/contract/index.ts';
import { parseRunnerSetInput, type SetSpec } from '../../core/input/runnerSet.ts';
import { RateLimitedLogger } from '../process/rateLimitedLogger.ts';
import { FAILED_RETRY_MS, nextStep, type Step } from './nextStep.ts';
import type { ResourceApi } from './resourceApi.ts';
import {
  inputOf,
  statusOf,
  statusPatch,
  type RunnerSetResource,
  type ReadyStatus,
} from './runnerSetResource.ts';
import { setFacts, type ControllerPlace } from './setFacts.ts';
import type { FoundSet, SetWorkflows } from './setWorkflows.ts';

/** Options of {@link RunnerSetController}. */
export interface RunnerSetControllerOptions {
  readonly api: ResourceApi;
  readonly sets: SetWorkflows;
  /** Namespace of the resources. */
  readonly namespace: string;
  /**
   * Returns the UID of the cluster of the resources. It is called at each reconciliation.
   * @throws Error if the API server does not answer
   */
  readonly cluster: () => Promise<string>;
  readonly taskQueue: string;
  readonly logger: Pick<Logger, 'info' | 'warn'>;
  /**
   * Interval between two reconciliations of each resource (ms), in addition to one after every
   * change.
   * @default 15000
   */
  readonly resyncMs?: number;
  /**
   * Time to wait before the next check after an action or a failure (ms).
   * @default 2000
   */
  readonly requeueMs?: number;
}

const AT_ONCE = 10;

/**
 * Reconciles RunnerSet resources with their sets. It starts when it is constructed and runs until
 * it is stopped.
 */
export class RunnerSetController {
  readonly #options: RunnerSetControllerOptions;
  readonly #end = new AbortController();
  readonly #log = new RateLimitedLogger();
  readonly #running: Promise<unknown>;
  #resources = new Map<string, RunnerSetResource>();
  /** Names of resources to reconcile. */
  readonly #due = new Set<string>();
  #wake: () => void = () => undefined;
  /** Changes that sets have rejected, by the UID of the resource. */
  readonly #refused = new Map<
    string,
    { readonly generation: number; readonly at: number; readonly why: string }
  >();

  /** Starts immediately and runs until {@link stop}. */
  constructor(options: RunnerSetControllerOptions) {
    this.#options = options;
    this.#running = Promise.all([this.#watch(), this.#work()]);
  }

  async stop(): Promise<void> {
    this.#end.abort();
    this.#wake();
    await this.#running;
  }

  /** Lists the resources and watches them until the next list is due. */
  async #watch(): Promise<void> {
    const { api, resyncMs = 15_000, requeueMs = 2_000 } = this.#options;
    const { signal } = this.#end;
    while (!signal.aborted) {
      try {
        const { resources, resourceVersion } = await api.list(signal);
        const before = [...this.#resources.keys()];
        this.#resources = new Map(resources.map((resource) => [resource.metadata.name, resource]));
        this.#enqueue([...before, ...this.#resources.keys(), ...(await this.#namesOfSets())]);
        for await (const { type, object } of await api.watch(
          resourceVersion,
          resyncMs * 1.2,
          signal,
        )) {
          if (type === 'BOOKMARK') continue;
          const { name, generation, uid } = object.metadata;
          const known = this.#resources.get(name);
          if (type === 'DELETED') this.#resources.delete(name);
          else this.#resources.set(name, object);
          // A change of the status alone, by this or another worker, does not trigger a check.
          if (
            type === 'DELETED' ||
            known?.metadata.uid !== uid ||
            known.metadata.generation !== generation
          )
            this.#enqueue([name]);
        }
      } catch (error) {
        if (signal.aborted) return;
        this.#log.line('watch', (leftOut) =>
          this.#options.logger.warn(
            { err: error, leftOut },
            'RunnerSet resources cannot be watched; trying again',
          ),
        );
        await this.#pause(requeueMs);
      }
    }
  }

  /**
   * Returns the names of running sets that resources created, for those whose resource is deleted.
   * Visibility may be unavailable, and must not keep the resources that exist from being compared.
   */
  async #namesOfSets(): Promise<string[]> {
    try {
      return await this.#options.sets.namesOf(await this.#place());
    } catch (error) {
      this.#log.line('list', (leftOut) =>
        this.#options.logger.warn(
          { err: error, leftOut },
          'failed to list the sets of deleted RunnerSet resources; trying again',
        ),
      );
      return [];
    }
  }

  async #place(): Promise<ControllerPlace> {
    const { cluster, namespace, taskQueue } = this.#options;
    return { cluster: await cluster(), namespace, taskQueue };
  }

  async #work(): Promise<void> {
    while (!this.#end.signal.aborted) {
      if (this.#due.size === 0) await new Promise<void>((resolve) => (this.#wake = resolve));
      const names = [...this.#due];
      this.#due.clear();
      await pMap(names, async (name) => await this.#reconcile(name), { concurrency: AT_ONCE });
    }
  }

  #enqueue(names: readonly string[]): void {
    for (const name of names) this.#due.add(name);
    this.#wake();
  }

  #enqueueAfter(name: string): void {
    void this.#pause(this.#options.requeueMs ?? 2_000).then(() =>
      this.#end.signal.aborted ? undefined : this.#enqueue([name]),
    );
  }

  async #pause(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#end.signal, ref: false }).catch(() => undefined);
  }

  async #reconcile(name: string): Promise<void> {
    try {
      if (await this.#reconcileOne(name)) return;
    } catch (error) {
      if (this.#end.signal.aborted) return;
      this.#log.line('reconcile', (leftOut) =>
        this.#options.logger.warn(
          { err: error, runnerSet: name, leftOut },
          'a RunnerSet resource and its set cannot be compared; trying again',
        ),
      );
    }
    this.#enqueueAfter(name);
  }

  /**
   * Reconciles one set.
   * @returns whether only a change, or the next regular check, can make a difference
   */
  async #reconcileOne(name: string): Promise<boolean> {
    const { api, sets, logger } = this.#options;
    const place = await this.#place();
    const found = await sets.find(name);
    let resource = this.#resources.get(name);
    let { action, status } = this.#next(name, found, resource, place);
    if (action !== 'none') {
      // Read the current resource: the watch may be behind.
      resource = await api.get(name);
      ({ action, status } = this.#next(name, found, resource, place));
    }
    if (action !== 'none') {
      logger.info(
        { runnerSet: name, step: action, why: status.message },
        'a RunnerSet resource and its set differ',
      );
      status = (await this.#carryOut(action, place, name, resource, found)) ?? status;
    }
    if (resource !== undefined) {
      const setStatus = found.state === 'running' ? found.declaration?.status : undefined;
      const patch = statusPatch(resource.status, statusOf(resource, status, setStatus, Date.now()));
      if (patch !== undefined) await api.patchStatus(name, patch);
    }
    return action === 'none' && status.reason !== 'NoWorker';
  }

  #next(
    name: string,
    found: FoundSet,
    resource: RunnerSetResource | undefined,
    place: ControllerPlace,
  ): Step {
    // A resource that waits only for another party's finalizer counts as gone.
    if (resource === undefined || resource.metadata.deletionTimestamp !== undefined)
      return nextStep({ resource: undefined, set: setFacts(found, undefined, place) });
    const { generation, uid } = resource.metadata;
    const wanted = admit(resource);
    const observed = resource.status?.observedGeneration === generation;
    const reportedEnded =
      resource.status?.conditions?.some(({ reason }) => reason === 'Ended') ?? false;
    const step = nextStep({
      resource: {
        name,
        observed,
        reportedEnded,
        ...(typeof wanted === 'string' ? { invalid: wanted } : {}),
      },
      set: setFacts(found, resource, place),
    });
    // A set rejects the same declaration again until the spec or the worker's settings change.
    const refused = this.#refused.get(uid);
    if (
      step.action !== 'apply' ||
      refused?.generation !== generation ||
      Date.now() - refused.at >= FAILED_RETRY_MS
    )
      return step;
    return { action: 'none', status: { ready: false, reason: 'Refused', message: refused.why } };
  }

  /**
   * Carries out a step.
   * @returns the status of the resource afterwards, if it differs from the expected one
   */
  async #carryOut(
    what: 'start' | 'apply' | 'end',
    { cluster, namespace }: ControllerPlace,
    name: string,
    resource: RunnerSetResource | undefined,
    found: FoundSet,
  ): Promise<ReadyStatus | undefined> {
    const { sets } = this.#options;
    if (what === 'end' && found.state === 'running' && found.resource !== undefined)
      await sets.end(
        name,
        found.chain,
        `its RunnerSet resource in namespace ${namespace} was deleted`,
      );
    const wanted = resource && admit(resource);
    if (
      what === 'end' ||
      resource === undefined ||
      wanted === undefined ||
      typeof wanted === 'string'
    )
      return undefined;
    const { uid, generation } = resource.metadata;
    try {
      await (what === 'start'
        ? sets.start(wanted.input, wanted.spec, { namespace, name, uid, cluster })
        : sets.apply(wanted.input));
      this.#refused.delete(uid);
    } catch (error) {
      // Most likely the controller of another worker was faster. The next check shows it.
      if (error instanceof WorkflowExecutionAlreadyStartedError) return undefined;
      const message = refusalIn(error);
      if (message === undefined) throw error;
      this.#refused.set(uid, { generation, at: Date.now(), why: message });
      return { ready: false, reason: 'Refused', message };
    }
    return undefined;
  }
}

/**
 * Returns a set's objection to a declaration, or `undefined` for any other failure, which may pass.
 */
function refusalIn(error: unknown): string | undefined {
  const cause = error instanceof WorkflowFailedError ? error.cause : undefined;
  const refusals: readonly unknown[] = [
    FAILURE_TYPES.invalidInput,
    FAILURE_TYPES.setCommandRejected,
  ];
  return cause instanceof ApplicationFailure && refusals.includes(cause.type)
    ? cause.message
    : undefined;
}

interface Admitted {
  readonly input: RunnerSetInput;
  readonly spec: SetSpec;
}

/**
 * Validates a resource. Returns its errors as text if it is invalid. The worker of the set also
 * checks the pod policy, the credentials and the limits of timeouts.
 */
function admit(resource: RunnerSetResource): Admitted | string {
  const input = inputOf(resource);
  const parsed = parseRunnerSetInput(input, {
    hash: () => '',
    checkSchedule: scheduleError,
    policy: 'elsewhere',
  });
  if (!parsed.ok)
    return parsed.errors
      .map(
        ({ field, message }) =>
          `${field === 'name' ? 'metadata.name' : `spec.${field}`}: ${message}`,
      )
      .join('; ');
  return { input, spec: parsed.spec };
}
