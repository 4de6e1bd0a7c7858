/**
 * Stays attached to a runner or job until it ends: shows its phase on one line, and handles
 * signals.
 */
import { cancelSignal, SEARCH_ATTRIBUTES, type CancelMode } from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { CliError, EXIT } from './exit.ts';
import { exitStatusOf, sleep, waitForResult, type RunnerEnd } from './followRunner.ts';
import { debounceMs, interruptAction, sigtermAction, type OnSigterm } from './interrupts.ts';
import type { Output } from './output.ts';
import { ProgressLine, type Observation } from './phaseLine.ts';
import { QUERY_TIMEOUT_MS, queryStatus } from './runnerRow.ts';
import type { Session } from './session.ts';
import { printCommandOutput } from '../runner/runnerLogs.ts';
import { findRunner, type StartedRunner } from '../runner/startRunner.ts';
import { isConnectionLoss, toCliError } from './temporalErrors.ts';

/** Interval between updates of the line (ms). */
const REFRESH_MS = 1_000;
/** Time to wait for the rest of the output of a runner that has ended (ms). */
const LAST_OUTPUT_MS = 2_000;
/** Time that detaching waits for a cancel request in flight (ms). */
const DETACH_WAIT_MS = 1_500;

/** Kind of the followed object, with the names of its commands. */
export interface AttachTarget {
  /** Commands without the ID. */
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
const ATTACHED_RUNNER: AttachTarget = {
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

/** Options of {@link attach}. */
export interface AttachOptions {
  /** Kind of the followed object. @default a runner */
  readonly target?: AttachTarget;
  /** Effect of the first SIGTERM. @default "detach" */
  readonly onSigterm?: OnSigterm;
}

type ExitReason =
  { readonly kind: 'exit' } | { readonly kind: 'detach'; readonly signal: 'SIGTERM' | 'SIGHUP' };

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
  const signals = handleSignals(line, requests, followed, onSigterm, output.terminal.env);
  let lost = false;
  try {
    const starting = startOrAttach(session, workflowId, begin, requests, followed);
    requests.follow(starting);
    const start = await Promise.race([starting, signals.leave]);
    if ('kind' in start) return await exitBeforeStart(line, workflowId, start, requests, followed);
    const runner = start;
    const ui = session.link(workflowId, runner.runId);
    output.note(
      runner.attached ? 'attached' : 'started',
      `${runner.attached ? 'attached to' : 'started'} ${workflowId}${ui === undefined ? '' : `  ${ui}`}`,
      { id: workflowId, runId: runner.runId },
    );
    const ended = waitForResult(
      session,
      runner.workflowId,
      runner.runId,
      over.signal,
      (connection) => (lost = connection === 'lost'),
    );
    const printing = printOutput(session, output, runner, line, over.signal, followed);
    const watching = watch(session, runner.workflowId, line, over.signal, () => lost, followed);
    const first = await Promise.race([
      ended.then((end) => ({ kind: 'ended', end }) as const),
      signals.leave,
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
  } finally {
    over.abort();
    line.end();
    signals.stop();
  }
}

/** Prints the output of the followed object. A failure is only a message. */
function printOutput(
  session: Session,
  { terminal: { env } }: Output,
  runner: StartedRunner,
  line: ProgressLine,
  signal: AbortSignal,
  followed: AttachTarget,
): { finish: (end: RunnerEnd) => Promise<void> } {
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

/** Exits before Temporal has confirmed the start. */
async function exitBeforeStart(
  line: ProgressLine,
  workflowId: string,
  how: ExitReason,
  requests: CancelRequests,
  { commands }: AttachTarget,
): Promise<number> {
  const { any } = requests;
  const delivered = await requests.settled(DETACH_WAIT_MS);
  if (how.kind === 'detach') {
    const state = !any || delivered ? 'goes on' : `was not cancelled (${commands.cancel})`;
    line.message(
      'detached',
      `detached (${how.signal}) before the start of ${workflowId} was answered: if it was started it ${state}; re-attach with: ${commands.attach} ${workflowId}`,
    );
    return how.signal === 'SIGTERM' ? EXIT.sigterm : EXIT.sighup;
  }
  line.message(
    'left',
    delivered
      ? `exited: ${workflowId} was started, and keeps its cancel request; see it with: ${commands.get} ${workflowId}`
      : `exited before the start of ${workflowId} was confirmed; the cancel request was not delivered. See whether it runs with: ${commands.get} ${workflowId}; cancel it with: ${commands.cancel} ${workflowId}`,
  );
  return EXIT.failed;
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
 * Detaches from the runner or job, which continues. A cancel request in flight is delivered first,
 * if possible.
 */
async function detach(
  line: ProgressLine,
  workflowId: string,
  signal: 'SIGTERM' | 'SIGHUP',
  requests: CancelRequests,
  { commands }: AttachTarget,
): Promise<number> {
  const { any } = requests;
  const delivered = await requests.settled(DETACH_WAIT_MS);
  line.end();
  const cancelState = delivered
    ? 'keeps its cancel request'
    : `was not cancelled, because Temporal does not answer; send the request with: ${commands.cancel} ${workflowId}`;
  const state = any ? cancelState : 'continues';
  line.message(
    'detached',
    `detached (${signal}): ${workflowId} ${state}; re-attach with: ${commands.attach} ${workflowId}`,
  );
  return signal === 'SIGTERM' ? EXIT.sigterm : EXIT.sighup;
}

async function exit(
  line: ProgressLine,
  runner: StartedRunner,
  requests: CancelRequests,
  { commands }: AttachTarget,
): Promise<number> {
  const delivered = await requests.settled(DETACH_WAIT_MS);
  line.end();
  line.message(
    'left',
    delivered
      ? `exited: ${runner.workflowId} keeps its cancel request; see it with: ${commands.get} ${runner.workflowId}`
      : `exited, and the cancel request was not delivered, because Temporal does not answer; send it with: ${commands.cancel} ${runner.workflowId}`,
  );
  return EXIT.failed;
}

/**
 * Installs the signal handlers. They stay until `stop`, so that no signal ends the process in
 * between.
 */
function handleSignals(
  line: ProgressLine,
  requests: CancelRequests,
  { drains }: AttachTarget,
  onSigterm: OnSigterm,
  env: Readonly<Record<string, string | undefined>>,
): { leave: Promise<ExitReason>; stop: () => void } {
  const onTerminal = process.stdin.isTTY;
  const source = { onTerminal, debounceMs: debounceMs(env, onTerminal) };
  let presses = 0;
  let terms = 0;
  let last: number | undefined;
  let resolve: (leave: ExitReason) => void;
  const leaving = new Promise<ExitReason>((done) => (resolve = done));
  const request = (mode: 'drain' | 'stop', cause: string, what: string): void => {
    requests.send(mode, cause);
    line.message(
      mode,
      requests.isBegun ? what : `${what} (its start is not confirmed yet; the request follows it)`,
    );
  };
  const onSigint = (): void => {
    const now = performance.now();
    const { kind } = interruptAction(presses, last === undefined ? undefined : now - last, source);
    if (kind === 'ignore') return;
    presses += 1;
    last = now;
    if (kind === 'exit') return resolve({ kind: 'exit' });
    if (kind === 'drain')
      return request('drain', 'Ctrl-C', `draining: ${drains}; press Ctrl-C again to stop it`);
    request(
      'stop',
      onTerminal ? 'Ctrl-C again' : 'SIGINT',
      `stopping: the job has its grace period to end; ${onTerminal ? 'press Ctrl-C again' : 'send SIGINT again'} to exit without waiting`,
    );
  };
  const onTerm = (): void => {
    if (sigtermAction(terms++, onSigterm) === 'detach')
      return resolve({ kind: 'detach', signal: 'SIGTERM' });
    request(
      'stop',
      'SIGTERM',
      'stopping: the job has its grace period to end; send SIGTERM again to detach',
    );
  };
  const onSighup = (): void => resolve({ kind: 'detach', signal: 'SIGHUP' });
  process.on('SIGINT', onSigint).on('SIGTERM', onTerm).on('SIGHUP', onSighup);
  return {
    leave: leaving,
    stop: () => void process.off('SIGINT', onSigint).off('SIGTERM', onTerm).off('SIGHUP', onSighup),
  };
}

/** Cancel requests to one workflow. They are retried while Temporal does not answer. */
class CancelRequests {
  private readonly session: Session;
  private readonly workflowId: string;
  private readonly command: string;
  private readonly over: AbortSignal;
  private readonly onProblem: (mode: CancelMode, problem: string) => void;
  private readonly sending: Promise<boolean>[] = [];
  private starting: Promise<unknown> = new Promise(() => {});
  private started = false;

  constructor(
    session: Session,
    workflowId: string,
    command: string,
    over: AbortSignal,
    onProblem: (mode: CancelMode, problem: string) => void,
  ) {
    this.session = session;
    this.workflowId = workflowId;
    this.command = command;
    this.over = over;
    this.onProblem = onProblem;
  }

  /** Delays all requests until the workflow exists. */
  follow(starting: Promise<StartedRunner>): void {
    this.starting = starting;
    // The caller that awaits `starting` handles its failure.
    starting.then(() => (this.started = true)).catch(() => undefined);
  }

  get isBegun(): boolean {
    return this.started;
  }

  /** Whether a cancel request was made. */
  get any(): boolean {
    return this.sending.length > 0;
  }

  /**
   * Sends a cancel request.
   * @param cause - name of the signal that caused it
   */
  send(mode: CancelMode, cause: string): void {
    this.sending.push(this.deliver(mode, cause));
  }

  /** Returns whether the last request, which is the strongest, was delivered within `ms`. */
  async settled(ms: number): Promise<boolean> {
    const giveUp = new AbortController();
    const result = await Promise.race([
      this.sending.at(-1) ?? Promise.resolve(true),
      sleep(ms, giveUp.signal).then(() => false),
    ]);
    giveUp.abort();
    return result;
  }

  private async deliver(mode: CancelMode, cause: string): Promise<boolean> {
    if (
      !(await this.starting.then(
        () => true,
        () => false,
      ))
    )
      return false;
    const handle = this.session.client.workflow.getHandle(this.workflowId);
    const reason = `${cause} in ${this.command}`;
    let reported = false;
    while (!this.over.aborted) {
      try {
        await this.session.attempt(() => handle.signal(cancelSignal, { mode, reason }), 5_000);
        return true;
      } catch (error) {
        const known = toCliError(error, this.session.errorSubject(this.workflowId));
        if (known.code === 'not_found') return true; // it has ended meanwhile
        if (!reported) this.onProblem(mode, known.message);
        reported = true;
        await sleep(REFRESH_MS, this.over);
      }
    }
    return false;
  }
}

/**
 * Updates the phase on the line. Never resolves, because the result of the workflow ends it. Never
 * throws: faults are shown on the line.
 */
async function watch(
  session: Session,
  workflowId: string,
  line: ProgressLine,
  over: AbortSignal,
  lost: () => boolean,
  followed: AttachTarget,
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
