import type { ChangedFile, SimulatedCheckRun, SimulatedStatus } from './types.ts';

/** What was reported on commits, in the order in which it came, and what pull requests change. Every commit exists. */
export class Commits {
  #statuses: SimulatedStatus[] = [];
  #checkRuns: SimulatedCheckRun[] = [];
  readonly #pullRequests = new Map<string, readonly ChangedFile[]>();
  #nextId = 90_001;

  addPullRequest(repo: string, number: number, files: readonly ChangedFile[]): void {
    this.#pullRequests.set(`${repo.toLowerCase()}#${number}`, files);
  }

  /** @returns `undefined`: there is no such pull request */
  changedFiles(repo: string, number: number): readonly ChangedFile[] | undefined {
    return this.#pullRequests.get(`${repo.toLowerCase()}#${number}`);
  }

  addStatus(status: Omit<SimulatedStatus, 'id' | 'created_at'>): SimulatedStatus {
    const made = { ...status, id: this.#nextId++, created_at: new Date().toISOString() };
    this.#statuses.push(made);
    return made;
  }

  addCheckRun(run: Omit<SimulatedCheckRun, 'id'>): SimulatedCheckRun {
    const made = { ...run, id: this.#nextId++ };
    this.#checkRuns.push(made);
    return made;
  }

  checkRun(repo: string, id: number): SimulatedCheckRun | undefined {
    return this.#checkRuns.find((run) => run.id === id && same(run.repo, repo));
  }

  /** Every status, not the last of each context alone. */
  statuses(repo: string, sha: string): SimulatedStatus[] {
    return this.#statuses.filter((status) => same(status.repo, repo) && same(status.sha, sha));
  }

  checkRuns(repo: string, sha: string): SimulatedCheckRun[] {
    return this.#checkRuns.filter((run) => same(run.repo, repo) && same(run.sha, sha));
  }
}

const same = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase();
