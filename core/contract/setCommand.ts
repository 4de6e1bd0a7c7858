/** Public names of commands to runner sets: the workflow type, what it is started with, and what a set answers. */
import { defineSignal } from '@temporalio/workflow';
import type { RunnerSetStatus, SetRunnerStatus } from './runnerSet.ts';
import type { RunnerSetInput, SetScale } from './runnerSetInput.ts';

/**
 * Tells a running set one thing, and ends with its answer. A command is a workflow, and no update of the set, because it is to be kept while
 * no worker runs, and must not put the set's history out of order: https://github.com/temporalio/sdk-python/issues/673.
 */
export const SET_COMMAND_WORKFLOW = 'setCommand';

/**
 * A workflow id for a command; any other will do. It is what the set knows the command by: one that is sent again under the same id is not
 * carried out again. @param request - differs for each command
 */
export const setCommandId = (set: string, request: string): string =>
  `set-command:${set}:${request}`;

/** What a set can be told. */
export type SetCommand =
  /** Another size. Of a set that follows demand, the bound that is not given stays. */
  | ({ command: 'scale' } & SetScale)
  /** Replaces the whole declaration; a template that differs starts a rollout. */
  | { command: 'apply'; declaration: RunnerSetInput }
  /** Another template: starts a rollout if it differs. */
  | { command: 'setTemplate'; template: RunnerSetInput['template'] }
  /** Start no runner and drain none. */
  | { command: 'pause'; reason?: string }
  /** Start runners again, also after a breaker stopped the set. */
  | { command: 'resume' }
  /** Keep a runner, by name or workflow id, from scale-downs and rollouts; with `release` let it go. */
  | { command: 'hold'; runner: string; release?: boolean }
  /** Drain every runner and end the set: what `holdfast set delete` does. */
  | { command: 'drain'; reason?: string };

/** Input of the `setCommand` workflow. */
export type SetCommandInput = SetCommand & {
  /** Name of the set. */
  set: string;
};

/** Result of the `setCommand` workflow: what the set says of itself then. Its runners are counted; the query `status` has each. */
export interface SetCommandResult extends Omit<RunnerSetStatus, 'runners'> {
  runners: Record<SetRunnerStatus['state'], number>;
}

/** What a command's workflow sends to its set. */
export interface SetCommandRequest {
  /** Workflow id of the command: the answer goes there. */
  workflowId: string;
  command: SetCommand;
}

/** What the set sends back. */
export type SetCommandReply =
  { result: SetCommandResult } | { error: { type: string; message: string } };

/** To a set. Start a `setCommand` rather than sending it: that checks the command, and has the answer. */
export const setCommandSignal = defineSignal<[SetCommandRequest]>('command');
/** To a command. */
export const setCommandReplySignal = defineSignal<[SetCommandReply]>('commandReply');
