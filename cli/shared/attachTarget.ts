/** Kinds of objects that a command can attach to. */
import type { Observation } from './phaseLine.ts';
import { queryStatus } from './runnerRow.ts';
import type { Session } from './session.ts';
import { printCommandOutput } from '../runner/runnerLogs.ts';
import { findRunner, type StartedRunner } from '../runner/startRunner.ts';

/** Kind of the followed object, with the names of its commands. */
export interface AttachTarget {
  /** Commands to show in messages, without the ID. */
  readonly commands: {
    readonly run: string;
    readonly attach: string;
    readonly get: string;
    readonly cancel: string;
  };
  /** Effect of the first Ctrl-C, for messages. */
  readonly drains: string;
  /**
   * Finds the object by its ID.
   * @throws CliError `not_found`, `unreachable`
   */
  readonly find: (session: Session, id: string) => Promise<StartedRunner>;
  /**
   * Returns the status of the workflow, or `undefined` if no worker answers.
   * @throws CliError
   */
  readonly observe: (session: Session, workflowId: string) => Promise<Observation | undefined>;
  /**
   * Prints the output until the object has ended.
   * @param how.ended - aborted when the object has ended
   * @param how.signal - aborted when no more output may be printed
   * @returns whether there was any output; `undefined` for an object without output
   * @default nothing is printed
   */
  readonly printOutput?: (
    session: Session,
    env: Readonly<Record<string, string | undefined>>,
    runner: StartedRunner,
    write: (line: string) => void,
    how: { readonly ended: AbortSignal; readonly signal: AbortSignal },
  ) => Promise<boolean | undefined>;
}

/** Attach target for a runner. */
export const ATTACHED_RUNNER: AttachTarget = {
  commands: {
    run: 'holdfast run',
    attach: 'holdfast run --attach',
    get: 'holdfast runner get',
    cancel: 'holdfast runner cancel',
  },
  drains: 'the job may finish',
  find: findRunner,
  observe: async (session, workflowId) => {
    const status = await queryStatus(session, workflowId);
    return status && { phase: status.phase, status };
  },
  printOutput: printCommandOutput,
};
