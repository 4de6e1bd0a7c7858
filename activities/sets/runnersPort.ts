/** The interface between the activities of sets and Temporal itself, which holds the runners' workflows. */
import type { RunnerInput, SetRunnerMemo } from '../../core/contract/index.ts';
import type { ListedRunner } from '../../core/calls/index.ts';
import type { CiJob, Scope } from '../../core/domain/ciServer.ts';

export interface RunnerStart {
  readonly workflowId: string;
  readonly set: string;
  readonly input: RunnerInput;
  readonly memo: SetRunnerMemo;
}

/** Starts, drains and lists runners of the task queue that the activity runs on. */
export interface RunnerWorkflows {
  /**
   * Starts a runner; one that was started already under this id, and may have ended, is as good.
   * @throws RunnerRefusedError where trying again does not help; anything else is worth another try
   */
  start(runner: RunnerStart): Promise<void>;
  /** Asks a runner to drain: its job may finish. `gone`: it has ended. */
  drain(workflowId: string, reason: string): Promise<'draining' | 'gone'>;
  /** The running runners of a set. */
  list(set: string): Promise<ListedRunner[]>;
  /** Of these jobs, those that are this set's to serve when all running sets are looked at, and those that its own runners run. */
  jobsOf(of: { set: string; taskQueue: string; scope: Scope }, jobs: readonly CiJob[]): Promise<CiJob[]>;
}

/** Temporal does not take the runner as it is. */
export class RunnerRefusedError extends Error {
  override readonly name = 'RunnerRefusedError';
}
