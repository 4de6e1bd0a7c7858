/** Runners of a set that operators have placed on hold. */
import type { SetRunners } from './runners.ts';

/** Runners that scale-downs and rollouts do not touch, by name or workflow id. */
export class Holds {
  readonly #held = new Set<string>();
  readonly #runners: SetRunners;

  constructor(runners: SetRunners) {
    this.#runners = runners;
  }

  get size(): number {
    return this.#held.size;
  }

  /** Returns the names or workflow ids, as operators gave them. */
  all(): string[] {
    return [...this.#held];
  }

  /** Replaces all holds. */
  replace(held: readonly string[]): void {
    this.#held.clear();
    for (const nameOrId of held) this.#held.add(nameOrId);
  }

  /** Places a runner on hold. */
  add(nameOrId: string): void {
    this.release(nameOrId);
    this.#held.add(nameOrId);
  }

  /** Releases a runner, whether it was held by its name or by its workflow id. */
  release(nameOrId: string): void {
    this.replace(this.all().filter((held) => !this.#isSame(held, nameOrId)));
  }

  /** Removes the holds of a runner that has ended. */
  onRunnerEnded(workflowId: string, runnerName: string | undefined): void {
    this.#held.delete(workflowId);
    if (runnerName !== undefined) this.#held.delete(runnerName);
  }

  /** Whether a hold refers to this runner, given by its name or its workflow id. */
  has(nameOrId: string): boolean {
    return this.all().some((held) => this.#isSame(held, nameOrId));
  }

  isHeld({ workflowId, runnerName }: { workflowId: string; runnerName?: string }): boolean {
    return this.#held.has(workflowId) || (runnerName !== undefined && this.#held.has(runnerName));
  }

  /** Whether two identifiers, each a runner name or a workflow id, refer to the same runner. */
  #isSame(one: string, other: string): boolean {
    const runner = this.#runners.find(one);
    return one === other || (runner !== undefined && runner === this.#runners.find(other));
  }
}
