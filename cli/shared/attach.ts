/**
 * Stays attached to a runner or job until it ends: shows its phase on one line, and handles
 * signals.
 */
import { SEARCH_ATTRIBUTES } from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { CliError } from './exit.ts';
import { exitStatusOf, sleep, waitForResult, type RunnerEnd } from './followRunner.ts';
import type { OnSigterm } from './interrupts.ts';
import type { Output } from './output.ts';
import { ProgressLine, type Observation } from './phaseLine.ts';
import { QUERY_TIMEOUT_MS } from './runnerRow.ts';
import type { Session } from './session.ts';
import type { StartedRunner } from '../runner/startRunner.ts';
import { isConnectionLoss, toCliError } from './temporalErrors.ts';
import { AttachSignals, type ExitReason } from './attachSignals.ts';
import { ATTACHED_RUNNER, type AttachTarget } from './attachTarget.ts';
import { CancelRequests } from './cancelRequests.ts';
import { detach, exit, exitBeforeStart } from './leave.ts';

/** Interval between updates of the line (ms). */
const REFRESH_MS = 1_000;

/** Time to wait for the rest of the output of a runner that has ended (ms). */
const LAST_OUTPUT_MS = 2_000;

/** Options of {@link attach}. */
export interface AttachOptions {
  /** Kind of the followed object. @default a runner */
  readonly target?: AttachTarget;
  /** Effect of the first SIGTERM. @default "detach" */
  readonly onSigterm?: OnSigterm;
}

/**
 * Starts a runner or job, unless it is running, and follows it. On a terminal the first SIGINT
 * drains it, the second stops it, and the third exits. Without a terminal the first stops it and
 * the second exits. A runner whose start is still in flight is cancelled once it exists. SIGTERM
 * and SIGHUP detach immediately and change nothing, because a node drain or a closed terminal is
 * not meant for the runner. With `onSigterm: 'stop'` the first SIGTERM stops it.
 * @param begin - starts or finds the object
 * @returns the exit status
 * @throws CliError if it cannot be started
 */
export async function attach(
  session: Session,
  output: Output,
  workflowId: string,
  begin: () => Promise<StartedRunner>,
  { target: followed = ATTACHED_RUNNER, onSigterm = 'detach' }: AttachOptions = {},
): Promise<number> {
  const over = new AbortController();
  const line = new ProgressLine(output, workflowId, Date.now());
  const requests = new CancelRequests(
    session,
    workflowId,
    followed.commands.run,
    over.signal,
    (mode, problem) =>
      line.message(
        'cancel_not_sent',
        `the ${mode} request is not delivered yet (${problem}); retrying`,
      ),
  );
  const signals = new AttachSignals(line, requests, followed, onSigterm, output.terminal.env);
  const attached: Attached = { session, output, line, requests, followed, over: over.signal };
  try {
    const starting = startOrAttach(session, workflowId, begin, requests, followed);
    requests.follow(starting);
    const start = await Promise.race([starting, signals.leave]);
    if ('kind' in start) return await exitBeforeStart(line, workflowId, start, requests, followed);
    const ui = session.link(workflowId, start.runId);
    output.note(
      start.attached ? 'attached' : 'started',
      `${start.attached ? 'attached to' : 'started'} ${workflowId}${ui === undefined ? '' : `  ${ui}`}`,
      { id: workflowId, runId: start.runId },
    );
    return await follow(attached, start, signals.leave);
  } finally {
    over.abort();
    line.end();
    signals.stop();
  }
}

/** An attached command. */
interface Attached {
  readonly session: Session;
  readonly output: Output;
  readonly line: ProgressLine;
  readonly requests: CancelRequests;
  readonly followed: AttachTarget;
  /** Aborted when the command ends. */
  readonly over: AbortSignal;
}

/** Follows a started runner or job until it ends, or the user leaves. Returns the exit status. */
async function follow(
  attached: Attached,
  runner: StartedRunner,
  leave: Promise<ExitReason>,
): Promise<number> {
  const { session, output, line, requests, followed, over } = attached;
  let lost = false;
  const ended = waitForResult(
    session,
    runner.workflowId,
    runner.runId,
    over,
    (connection) => (lost = connection === 'lost'),
  );
  const printing = printOutput(attached, runner);
  const watching = watch(attached, runner.workflowId, () => lost);
  const first = await Promise.race([
    ended.then((end) => ({ kind: 'ended', end }) as const),
    leave,
    watching,
  ]);
  if (first.kind === 'exit') return await exit(line, runner, requests, followed);
  if (first.kind === 'detach')
    return await detach(line, runner.workflowId, first.signal, requests, followed);
  await printing.finish(first.end);
  line.end();
  // Print the last line of the log: the status may not have been read since.
  line.printLog(first.end.log);
  return report(session, output, runner, first.end);
}

/** Prints the output of the followed object. A failure is only a message. */
function printOutput(
  { session, output, line, followed, over: signal }: Attached,
  runner: StartedRunner,
): { finish: (end: RunnerEnd) => Promise<void> } {
  const { env } = output.terminal;
  const ended = new AbortController();
  const write = (text: string): void => {
    if (!signal.aborted) line.print(text);
  };
  const printing = Promise.resolve(
    followed.printOutput?.(session, env, runner, write, { ended: ended.signal, signal }),
  ).catch((error: unknown) => {
    const { message } = error as Error;
    if (!signal.aborted) line.message('output_unavailable', `output not shown: ${message}`);
    return undefined;
  });
  return {
    async finish({ exitCode }) {
      ended.abort();
      const printed = await Promise.race([printing, sleep(LAST_OUTPUT_MS, signal)]);
      if (printed === false && exitCode !== undefined)
        line.message(
          'output_unavailable',
          'output not shown: the pod was deleted before its log could be read',
        );
    },
  };
}

/**
 * Starts the object. If the response is lost after the user requested its end, searches for it, so
 * that it does not keep running unnoticed.
 */
async function startOrAttach(
  session: Session,
  workflowId: string,
  begin: () => Promise<StartedRunner>,
  requests: CancelRequests,
  followed: AttachTarget,
): Promise<StartedRunner> {
  try {
    return await begin();
  } catch (error) {
    if (!requests.any || toCliError(error, session.errorSubject(workflowId)).code !== 'unreachable')
      throw error;
  }
  try {
    return { ...(await followed.find(session, workflowId)), attached: false };
  } catch (error) {
    const known = toCliError(error, session.errorSubject(workflowId));
    if (known.code === 'not_found')
      throw new CliError(
        'unreachable',
        `${workflowId} was not started: Temporal did not answer in time`,
        { cause: error },
      );
    throw new CliError(
      known.code,
      `${workflowId} may have been started, and the cancel request was not delivered (${known.message}); once Temporal answers, send it with: ${followed.commands.cancel} ${workflowId}`,
      { cause: error },
    );
  }
}

function report(session: Session, output: Output, runner: StartedRunner, end: RunnerEnd): number {
  const ui = session.link(runner.workflowId, runner.runId);
  output.result(
    {
      id: runner.workflowId,
      runId: runner.runId,
      attached: runner.attached,
      ...end,
      ...omitUndefined({ ui }),
    },
    [`${runner.workflowId} ${[end.outcome, end.cause].filter(Boolean).join('/')}: ${end.message}`],
  );
  return exitStatusOf(end);
}

/**
 * Updates the phase on the line. Never resolves, because the result of the workflow ends it. Never
 * throws: faults are shown on the line.
 */
async function watch(
  { session, line, followed, over }: Attached,
  workflowId: string,
  lost: () => boolean,
): Promise<never> {
  let phase = 'Requested';
  while (!over.aborted) {
    const seen = await observe(session, workflowId, phase, lost(), followed);
    if (over.aborted) break;
    phase = seen.phase;
    line.show(seen);
    await sleep(REFRESH_MS, over);
  }
  return new Promise<never>(() => {});
}

async function observe(
  session: Session,
  workflowId: string,
  phase: string,
  lost: boolean,
  followed: AttachTarget,
): Promise<Observation> {
  try {
    const seen = await followed.observe(session, workflowId);
    if (seen !== undefined) return seen;
    const description = await session.attempt(
      (client) => client.workflow.getHandle(workflowId).describe(),
      QUERY_TIMEOUT_MS,
    );
    return {
      phase: description.typedSearchAttributes.get(SEARCH_ATTRIBUTES.phase) ?? phase,
      problem: 'no worker answers',
    };
  } catch (error) {
    if (lost || isConnectionLoss(error)) return { phase, problem: 'Temporal does not answer' };
    return { phase, problem: toCliError(error, session.errorSubject(workflowId)).message };
  }
}
