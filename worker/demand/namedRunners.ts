/** Runners by their name at the CI server: a job's event names the one that runs it. */
import { setTimeout as delay } from 'node:timers/promises';
import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import { SEARCH_ATTRIBUTES, ciEventSignal, type CiEvent } from '../../core/contract/index.ts';
import { runnersNamed } from '../../core/domain/visibility.ts';

export interface NamedRunner {
  readonly workflowId: string;
  readonly running: boolean;
  /** Name of the set that it belongs to, or belonged to. */
  readonly set: string | undefined;
}

type Found = readonly NamedRunner[];

/** Names in one query. */
const MAX_NAMES = 200;
/** A name is used once, or by one static runner, whose earlier runs are listed after all that run: more than this tell nothing new. */
const MAX_LISTED = 1_000;
/** From the begin of one query to that of the next: Temporal allows a namespace 10 a second by default. */
const PAUSE_MS = 100;
/** Whoever comes meanwhile waits for the same query: one that hangs must not keep them all. */
const QUERY_DEADLINE_MS = 3_000;

/** Asks Temporal's visibility one query at a time: for a lone event at once, for many that come meanwhile together. */
export class NamedRunners {
  readonly #client: () => Client;
  readonly #taskQueue: string;
  readonly #waiting = new Map<string, PromiseWithResolvers<Found>>();
  #asking = false;

  /** @param client - the client of now. @throws Error while there is no connection to Temporal */
  constructor(client: () => Client, taskQueue: string) {
    this.#client = client;
    this.#taskQueue = taskQueue;
  }

  /** The runners of this task queue that have, or had, this name; each once. @throws what the query failed with */
  async find(name: string): Promise<Found> {
    const waiting = this.#waiting.get(name) ?? Promise.withResolvers<Found>();
    this.#waiting.set(name, waiting);
    if (!this.#asking) void this.#ask();
    return await waiting.promise;
  }

  async #ask(): Promise<void> {
    this.#asking = true;
    while (this.#waiting.size > 0) {
      const asked = [...this.#waiting].slice(0, MAX_NAMES);
      for (const [name] of asked) this.#waiting.delete(name);
      const pause = delay(PAUSE_MS, undefined, { ref: false });
      try {
        const found = await this.#look(asked.map(([name]) => name));
        for (const [name, { resolve }] of asked) resolve([...(found.get(name)?.values() ?? [])]);
      } catch (error) {
        for (const [, { reject }] of asked) reject(error);
      }
      await pause;
    }
    this.#asking = false;
  }

  /** By name, then by workflow id. */
  async #look(names: readonly string[]): Promise<Map<string, Map<string, NamedRunner>>> {
    const byName = new Map<string, Map<string, NamedRunner>>();
    const client = this.#client();
    await client.withDeadline(Date.now() + QUERY_DEADLINE_MS, async () => {
      let listed = 0;
      for await (const { workflowId, status, typedSearchAttributes } of client.workflow.list({ query: runnersNamed(this.#taskQueue, names), pageSize: MAX_LISTED })) {
        const name = typedSearchAttributes.get(SEARCH_ATTRIBUTES.name) ?? '';
        const found = byName.get(name) ?? new Map<string, NamedRunner>();
        byName.set(name, found);
        const running = status.name === 'RUNNING';
        if (running || !found.has(workflowId)) found.set(workflowId, { workflowId, running, set: typedSearchAttributes.get(SEARCH_ATTRIBUTES.set) });
        if (++listed === MAX_LISTED) break;
      }
    });
    return byName;
  }
}

/** @returns whether Temporal has the event; `false`: the runner has ended meanwhile, and there is nobody to tell */
export async function tellRunner({ workflow }: Client, workflowId: string, event: CiEvent): Promise<boolean> {
  try {
    await workflow.getHandle(workflowId).signal(ciEventSignal, event);
    return true;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    throw error;
  }
}
