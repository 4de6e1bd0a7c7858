/**
 * Commands of operators to a set. They are executed in order, each only once, and every one gets a
 * reply.
 */
import { getExternalWorkflowHandle, log } from '@temporalio/workflow';
import { admittedSet } from './admittedSet.ts';
import {
  setCommandReplySignal,
  type RunnerSetInput,
  type SetCommand,
  type SetCommandReply,
  type SetCommandRequest,
} from '../../core/contract/index.ts';
import { toCallResult, workerActivities } from '../shared/activityProxies.ts';
import {
  executeCommand,
  applyDeclaration,
  declarationFrom,
  parseRequest,
  reject,
  rejectionOf,
  type Rejection,
} from './commandRules.ts';
import type { SetState } from './state.ts';
import { commandResult } from './status.ts';

/** Number of executed commands that are remembered, to recognize commands that are sent again. */
const REMEMBERED = 200;

/** Queue of commands to a set. It remembers the last 200 executed ones to detect duplicates. */
export class SetCommands {
  readonly #waiting: SetCommandRequest[] = [];
  /** Ids of executed commands, oldest first. */
  readonly #done: Set<string>;
  #executing = 0;

  constructor(done: readonly string[]) {
    this.#done = new Set(done);
  }

  /** Returns the ids of executed commands for the next run. No command may be waiting. */
  completedIds(): string[] {
    return [...this.#done];
  }

  /**
   * Receives a command.
   *
   * @param request - body of the signal, which any sender may have written. A request that was not
   * sent by a `setCommand` workflow is skipped, because its reply could not be delivered.
   */
  receive(request: unknown): void {
    const read = parseRequest(request);
    if (read === undefined)
      log.warn(
        'A command was skipped: it needs id (a workflow ID) and command; start the workflow setCommand, which sends it',
      );
    else this.#waiting.push(read);
  }

  /** Whether a command is waiting. */
  get hasNext(): boolean {
    return this.#waiting.length > 0;
  }

  /**
   * Whether all commands have been executed and their replies delivered. A reply in transit is lost
   * when the run is closed.
   */
  get allReplied(): boolean {
    return !this.hasNext && this.#executing === 0;
  }

  /**
   * Executes the command that has waited longest, and the following commands that need no check by
   * a worker.
   *
   * @param tick - advances the set's time to the time that a worker reports
   * @returns the set's time (ms since the epoch)
   */
  async executeNext(state: SetState, tick: (at: number) => number): Promise<number> {
    const declared = this.#declaredNext(state);
    if (declared === undefined) {
      const now = tick((await workerActivities('Read the time').getTime()).at);
      while (this.hasNext && this.#declaredNext(state) === undefined)
        this.#finish(state, now, executeCommand);
      return now;
    }
    const called = await toCallResult(
      workerActivities('Validate the declaration').admitSet({ input: declared }),
    );
    if (called.kind === 'done') {
      const value = admittedSet(called.value, declared);
      const now = tick(value.at);
      this.#finish(state, now, () => applyDeclaration(state, value, now));
      return now;
    }
    const now = tick(0);
    const refused =
      called.kind === 'failed'
        ? { type: called.type, message: called.message }
        : reject('the validation of the declaration was cancelled');
    this.#finish(state, now, () => refused);
    return now;
  }

  /**
   * Returns the declaration of the set after the next command; `undefined` if the next command
   * changes no declaration, was executed before, or is rejected.
   */
  #declaredNext(state: SetState): RunnerSetInput | undefined {
    const [next] = this.#waiting;
    return next === undefined ||
      this.#done.has(next.workflowId) ||
      rejectionOf(state, next.command) !== undefined
      ? undefined
      : declarationFrom(state, next.command);
  }

  /** Executes the next command and sends its reply. */
  #finish(
    state: SetState,
    now: number,
    run: (state: SetState, command: SetCommand) => Rejection | undefined,
  ): void {
    const request = this.#waiting.shift();
    if (request === undefined) return;
    const { workflowId, command } = request;
    const error = this.#done.has(workflowId)
      ? undefined
      : (rejectionOf(state, command) ?? run(state, command));
    state.updateDemand(now);
    if (error === undefined) this.#remember(workflowId);
    this.#reply(
      workflowId,
      error === undefined ? { result: commandResult(state, now) } : { error },
    );
  }

  #remember(id: string): void {
    this.#done.add(id);
    const [oldest] = this.#done;
    if (this.#done.size > REMEMBERED && oldest !== undefined) this.#done.delete(oldest);
  }

  #reply(id: string, reply: SetCommandReply): void {
    this.#executing++;
    void getExternalWorkflowHandle(id)
      .signal(setCommandReplySignal, reply)
      .catch((error: unknown) =>
        log.info('A command was processed, but its sender no longer waits', {
          id,
          why: String(error),
        }),
      )
      .finally(() => this.#executing--);
  }
}
