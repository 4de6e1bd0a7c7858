/**
 * Public names of commands to runner sets: the workflow type, its input and result, and the signals
 * between a command and its set.
 */
import { defineSignal } from '@temporalio/workflow';
import type { RunnerSetStatus, SetRunnerStatus } from './runnerSet.ts';
import type { RunnerSetInput, SetScale } from './runnerSetInput.ts';

/**
 * Workflow type that sends one command to a running set and returns the set's answer. It is a
 * workflow and not an update of the set, because a command must be kept while no worker runs and
 * must not reorder the set's history: https://github.com/temporalio/sdk-python/issues/673.
 */
export const SET_COMMAND_WORKFLOW = 'setCommand';

/**
 * Workflow id for a command; any other id works, too. The set identifies a command by it and does
 * not execute a second one with the same id.
 * @param request - must differ for each command
 */
export const setCommandId = (set: string, request: string): string =>
  `set-command:${set}:${request}`;

/** Commands to a set. */
export type SetCommand =
  /** Changes the size. For a set that follows demand, an omitted bound does not change. */
  | ({ command: 'scale' } & SetScale)
  /** Replaces the whole declaration; a template that differs starts a rollout. */
  | { command: 'apply'; declaration: RunnerSetInput }
  /** Replaces the template; a different one starts a rollout. */
  | { command: 'setTemplate'; template: RunnerSetInput['template'] }
  /** Stops starting and draining runners. */
  | { command: 'pause'; reason?: string }
  /** Starts runners again, also after the breaker blocked the set. */
  | { command: 'resume' }
  /**
   * Exempts a runner, by name or workflow id, from scale-downs and rollouts; `release` ends that.
   */
  | { command: 'hold'; runner: string; release?: boolean }
  /** Drains every runner and ends the set, as `holdfast set delete` does. */
  | { command: 'drain'; reason?: string };

/** Input of the `setCommand` workflow. */
export type SetCommandInput = SetCommand & {
  /** Name of the set. */
  set: string;
};

/**
 * Result of the `setCommand` workflow: the status of the set after the command, with its runners
 * counted by state. The query `status` lists each runner.
 */
export interface SetCommandResult extends Omit<
  RunnerSetStatus,
  'runners' | 'runnerCounts' | 'moreAfter'
> {
  runners: Record<SetRunnerStatus['state'], number>;
}

/** Body of the signal from a command to its set. */
export interface SetCommandRequest {
  /** Workflow id of the command, which receives the reply. */
  workflowId: string;
  command: SetCommand;
}

/** Body of the signal from a set to a command. */
export type SetCommandReply =
  { result: SetCommandResult } | { error: { type: string; message: string } };

/**
 * Signal from a command to its set. Start a `setCommand` workflow instead of sending it: that
 * validates the command and returns the answer.
 */
export const setCommandSignal = defineSignal<[SetCommandRequest]>('command');
/** Signal with the answer of a set to a command. */
export const setCommandReplySignal = defineSignal<[SetCommandReply]>('commandReply');
