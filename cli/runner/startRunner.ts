/** Starts the workflow of a runner with a validated input. */
import type { WorkflowHandle } from '@temporalio/client';
import { WorkflowExecutionAlreadyStartedError, type SearchAttributePair } from '@temporalio/common';
import { RUNNER_WORKFLOW, SEARCH_ATTRIBUTES, type RunnerInput } from '../../core/contract/index.ts';
import { fairnessKey } from '../../core/domain/fairnessKey.ts';
import { parseRunnerInput, type RunnerSpec } from '../../core/input/runner.ts';
import { inputFromFlags, invalidInput, readInputFile, type RunnerFlags } from './runnerFlags.ts';
import { generateName } from '../shared/generateName.ts';
import { describeResource } from '../shared/resource.ts';
import { RUNNER } from '../shared/resourceKind.ts';
import type { Session } from '../shared/session.ts';
import { workflowSummary } from '../../core/domain/workflowSummary.ts';
import { toCliError } from '../shared/temporalErrors.ts';

/** Validated runner, before Temporal is called. */
export interface StartPlan {
  readonly workflowId: string;
  readonly input: RunnerInput;
  readonly summary: string;
  readonly searchAttributes: SearchAttributePair[];
  /**
   * Scope of the runner. Tasks of different organizations take turns
   * (https://docs.temporal.io/task-queue-priority-fairness).
   */
  readonly fairnessKey: string;
  /** Warnings about input that may not have the intended effect. */
  readonly warnings: readonly string[];
}

/** Runner that was started or found. */
export interface StartedRunner {
  readonly workflowId: string;
  readonly runId: string;
  /** Whether the runner existed already. */
  readonly attached: boolean;
}

/**
 * Reads and validates the input of a runner.
 * @throws CliError `usage` or `invalid_input`
 */
export async function planStart(
  flags: RunnerFlags,
  command: readonly string[] = [],
  name: () => string = generateName,
): Promise<StartPlan> {
  const raw = inputFromFlags(
    flags,
    flags.file === undefined ? {} : await readInputFile(flags.file),
    command,
  );
  const parts = [raw['set'], raw['name'] ?? name()].filter((part) => typeof part === 'string');
  const workflowId = `runner-${parts.join('-')}`;
  const parsed = parseRunnerInput(raw, { workflowId, policy: 'elsewhere' });
  if (!parsed.ok) throw invalidInput(parsed.errors);
  const { spec } = parsed;
  return {
    workflowId,
    input: raw as RunnerInput,
    summary: summaryOf(spec),
    searchAttributes: searchAttributesOf(spec),
    warnings: spec.warnings,
    fairnessKey: fairnessKey(spec.scope?.name ?? spec.name),
  };
}

/**
 * Starts the workflow of a runner.
 * @param existing - `fail` if a runner with this ID is running; `attach` to it; `attachEnded` also
 * to one that has ended
 * @throws CliError `conflict`, `usage`, `unreachable`
 */
export async function startRunner(
  session: Session,
  plan: StartPlan,
  existing: 'fail' | 'attach' | 'attachEnded' = 'fail',
): Promise<StartedRunner> {
  const { workflowId } = plan;
  try {
    const handle: WorkflowHandle & { firstExecutionRunId: string } = await session.attempt(
      (client) =>
        client.workflow.start(RUNNER_WORKFLOW, {
          workflowId,
          taskQueue: session.settings.taskQueue,
          args: [plan.input],
          workflowIdConflictPolicy: 'FAIL',
          workflowIdReusePolicy:
            existing === 'attachEnded' ? 'REJECT_DUPLICATE' : 'ALLOW_DUPLICATE',
          staticSummary: plan.summary,
          typedSearchAttributes: plan.searchAttributes,
          priority: { fairnessKey: plan.fairnessKey },
        }),
    );
    return { workflowId, runId: handle.firstExecutionRunId, attached: false };
  } catch (error) {
    if (existing === 'fail' || !(error instanceof WorkflowExecutionAlreadyStartedError))
      throw toCliError(error, session.errorSubject(workflowId));
    return findRunner(session, workflowId);
  }
}

/**
 * Finds a runner, to attach to it.
 * @throws CliError `not_found`, `unreachable`
 */
export async function findRunner(session: Session, id: string): Promise<StartedRunner> {
  const { workflowId, runId } = await describeResource(session, RUNNER, id);
  return { workflowId, runId, attached: true };
}

function summaryOf({ ephemeral, scope, labels, pod }: RunnerSpec): string {
  if (scope === undefined) return workflowSummary((pod.command ?? []).join(' '));
  return workflowSummary(
    `${ephemeral ? 'ephemeral' : 'static'} runner for ${scope.name} (${labels.join(', ')})`,
  );
}

function searchAttributesOf(spec: RunnerSpec): SearchAttributePair[] {
  return [
    { key: SEARCH_ATTRIBUTES.phase, value: 'Requested' },
    ...(spec.scope === undefined ? [] : [{ key: SEARCH_ATTRIBUTES.scope, value: spec.scope.name }]),
    ...(spec.set === undefined ? [] : [{ key: SEARCH_ATTRIBUTES.set, value: spec.set }]),
  ];
}
