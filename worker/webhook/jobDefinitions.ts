/** The declared jobs that run, by repository: from visibility, remembered for a few seconds. */
import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import pMap from 'p-map';
import { SingleFlight } from '../../activities/ciServers/singleFlight.ts';
import { isRunning } from '../../activities/runnerSet/isRunning.ts';
import {
  readJobDefinitionId,
  repositoryChangeSignal,
  type RepositoryChange,
} from '../../core/contract/index.ts';
import { runningJobDefinitions } from '../../core/domain/visibility.ts';

interface DefinitionsNow {
  readonly at: number;
  /** Workflow ids, by repository in lower case. */
  readonly byRepository: ReadonlyMap<string, readonly string[]>;
}

/** How old the list may be that a change is matched against. */
const AGE_MS = 5_000;
/** How old, before it is said that a repository has none: changes of such are many, and Temporal allows a namespace 10 looks a second by default. */
const NONE_AGE_MS = 2_000;
/** More are not looked at. */
const MAX_DEFINITIONS = 10_000;
/** Declared jobs asked about at once. */
const ASKED_AT_ONCE = 10;
/** Whoever comes meanwhile waits for the same look: one that hangs must not keep them all. */
const LIST_DEADLINE_MS = 3_000;

export class JobDefinitions {
  readonly #client: () => Client;
  readonly #taskQueue: string;
  readonly #now: () => number;
  readonly #looks = new SingleFlight(async () => (this.#kept = await this.#look()));
  #kept: DefinitionsNow | undefined;

  /** @param client - the client of now. @throws Error while there is no connection to Temporal */
  constructor(client: () => Client, taskQueue: string, now: () => number = Date.now) {
    this.#client = client;
    this.#taskQueue = taskQueue;
    this.#now = now;
  }

  /** Resolves when Temporal has the change for all declared jobs of the repository; with `false` when there is none. @throws what Temporal's client throws; some may have been told then: they all bear being told again */
  async tell(repository: string, change: RepositoryChange): Promise<boolean> {
    const told = await Promise.all(
      (await this.of(repository)).map(async (id) => await this.#signal(id, change)),
    );
    return told.includes(true);
  }

  /** Workflow ids of the declared jobs of a repository. @throws what Temporal's client throws when they cannot be listed */
  async of(repository: string): Promise<readonly string[]> {
    const key = repository.toLowerCase();
    return (
      (await this.#list(AGE_MS)).byRepository.get(key) ??
      (await this.#list(NONE_AGE_MS)).byRepository.get(key) ??
      []
    );
  }

  async #list(maxAgeMs: number): Promise<DefinitionsNow> {
    const since = this.#now() - maxAgeMs;
    const kept = (): DefinitionsNow | undefined =>
      this.#kept !== undefined && this.#kept.at >= since ? this.#kept : undefined;
    // A look that is under way may have begun too early, or have met an outage that is over.
    if (kept() === undefined) await this.#looks.join().catch(() => undefined);
    return kept() ?? (await this.#looks.join());
  }

  async #look(): Promise<DefinitionsNow> {
    const at = this.#now();
    const client = this.#client();
    const ids = new Set<string>();
    await client.withDeadline(Date.now() + LIST_DEADLINE_MS, async () => {
      for await (const { workflowId } of client.workflow.list({
        query: runningJobDefinitions(this.#taskQueue),
        pageSize: 1_000,
      }))
        if (ids.add(workflowId).size === MAX_DEFINITIONS) break;
      // A list may be behind, or cut short.
      const missing = [...(this.#kept?.byRepository.values() ?? [])]
        .flat()
        .filter((id) => !ids.has(id));
      await pMap(missing, async (id) => (await isRunning(client, id)) && ids.add(id), {
        concurrency: ASKED_AT_ONCE,
      });
    });
    const byRepository = new Map<string, string[]>();
    for (const id of ids) {
      const { repository } = readJobDefinitionId(id) ?? {};
      // What has an id of somebody's own making refuses every declaration.
      if (repository !== undefined)
        byRepository.set(repository, [...(byRepository.get(repository) ?? []), id]);
    }
    return { at, byRepository };
  }

  /** @returns whether Temporal has it; `false`: the declared job has ended meanwhile */
  async #signal(workflowId: string, change: RepositoryChange): Promise<boolean> {
    try {
      await this.#client().workflow.getHandle(workflowId).signal(repositoryChangeSignal, change);
      return true;
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return false;
      throw error;
    }
  }
}
