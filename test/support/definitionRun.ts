import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import {
  JOB_DEFINITION_WORKFLOW,
  applyDefinitionSignal,
  jobDefinitionId,
  jobDefinitionStatusQuery,
  repositoryChangeSignal,
  type JobDefinitionInput,
  type JobDefinitionStatus,
  type RepositoryChange,
} from '../../core/contract/index.ts';
import { step } from './jobRun.ts';
import type { MemoryWorld } from './memoryWorld.ts';
import { until } from './until.ts';

/** A declared job on the real Temporal server. */
export class DefinitionRun {
  readonly name: string;
  readonly repository = 'Acme/Web';
  readonly id: string;
  readonly handle: WorkflowHandle;
  readonly #world: MemoryWorld['world'];

  /** @param name - default: one of its own, because the server is others' too */
  constructor({ world }: Pick<MemoryWorld, 'world'>, name = `j${randomUUID().slice(0, 8)}`) {
    this.name = name;
    this.id = jobDefinitionId(this.repository, name);
    this.#world = world;
    this.handle = world.client.workflow.getHandle(this.id);
  }

  input = (more: Partial<JobDefinitionInput> = {}): JobDefinitionInput => ({
    name: this.name,
    repository: this.repository,
    on: { push: {}, pull_request: {} },
    report: false,
    test: [step('unit')],
    intervals: { relook: '300ms' },
    ...more,
  });

  /** @param more - over a sound declaration */
  async apply(more: Partial<JobDefinitionInput> = {}): Promise<void> {
    const { taskQueue, client } = this.#world;
    await client.workflow.signalWithStart(JOB_DEFINITION_WORKFLOW, {
      workflowId: this.id,
      taskQueue,
      args: [],
      signal: applyDefinitionSignal,
      signalArgs: [this.input(more)],
    });
  }

  /** A pull request of this number has another version. */
  async pull(
    pullRequest: number,
    commit: string,
    more: Partial<RepositoryChange> = {},
  ): Promise<void> {
    await this.handle.signal(repositoryChangeSignal, {
      event: 'pull_request',
      commit,
      ref: `refs/pull/${pullRequest}/merge`,
      branch: 'main',
      pullRequest,
      trusted: true,
      at: new Date().toISOString(),
      ...more,
    });
  }

  async push(branch: string, commit: string, more: Partial<RepositoryChange> = {}): Promise<void> {
    await this.handle.signal(repositoryChangeSignal, {
      event: 'push',
      commit,
      ref: `refs/heads/${branch}`,
      branch,
      at: new Date().toISOString(),
      ...more,
    });
  }

  /** Workflow id of the runs of a pull request, or of the pushes to a branch. */
  group = (changeSet: number | string): string =>
    `job-group:${this.name}:acme/web:${typeof changeSet === 'number' ? `main:pr-${changeSet}` : `${changeSet}:push`}`;

  status = async (): Promise<JobDefinitionStatus> =>
    await this.handle.query(jobDefinitionStatusQuery);

  async reaches(
    what: string,
    like: (status: JobDefinitionStatus) => boolean,
  ): Promise<JobDefinitionStatus> {
    let last: JobDefinitionStatus | undefined;
    await until(
      `the declared job to reach: ${what}`,
      async () => like((last = await this.status())),
      () => JSON.stringify(last),
    );
    return last as JobDefinitionStatus;
  }
}
