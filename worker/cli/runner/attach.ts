/** Stays attached to a runner until it ends: a live phase line, and Ctrl-C. */
import { cancelSignal, SEARCH_ATTRIBUTES, type CancelMode } from '../../../core/contract/index.ts';
import { defined } from '../../../core/defined.ts';
import { EXIT } from '../terminal/exit.ts';
import { exitStatusOf, pause, waitForEnd, type RunnerEnd } from './followRunner.ts';
import { onInterrupt, samePressMs } from './interrupts.ts';
import type { Output } from '../terminal/output.ts';
import { PhaseLine, type Seen } from './phaseLine.ts';
import { QUERY_TIMEOUT_MS, queryStatus } from './runnerState.ts';
import type { Session } from '../temporal/session.ts';
import type { StartedRunner } from './startRunner.ts';
import { isConnectionLoss, toCliError } from '../temporal/temporalErrors.ts';

/** How often the line is brought up to date, in ms. */
const REFRESH_MS = 1_000;
/** How long leaving waits for a cancel request that is still under way, in ms. */
const LAST_WORDS_MS = 1_500;

type Leave = { readonly kind: 'exit' } | { readonly kind: 'detach'; readonly signal: 'SIGTERM' | 'SIGHUP' };

/**
 * Follows one runner. SIGINT drains, stops, and at the third leaves; SIGTERM and SIGHUP leave at once and touch nothing: whoever stops
 * this process (a node drain, a closed terminal) does not thereby mean the runner.
 * @returns the status to exit with
 */
export async function attach(session: Session, output: Output, runner: StartedRunner): Promise<number> {
  const over = new AbortController();
  const line = new PhaseLine(output, runner.workflowId, Date.now());
  const requests = new CancelRequests(session, runner.workflowId, over.signal, (mode, problem) => line.message('cancel_not_sent', `the ${mode} request is not delivered yet (${problem}); trying again`));
  const signals = listen(line, requests, samePressMs(output.terminal.env, process.stdin.isTTY));
  let lost = false;
  try {
    const ended = waitForEnd(session, runner.workflowId, runner.runId, over.signal, (now) => (lost = now));
    const watching = watch(session, runner.workflowId, line, over.signal, () => lost);
    const first = await Promise.race([ended.then((end) => ({ kind: 'ended', end }) as const), signals.leave, watching]);
    if (first.kind === 'exit') return await leave(line, runner, requests);
    if (first.kind === 'detach') {
      line.end();
      line.message('detached', `detached (${first.signal}): ${runner.workflowId} goes on; re-attach with: holdfast run --attach ${runner.workflowId}`);
      return first.signal === 'SIGTERM' ? EXIT.sigterm : EXIT.sighup;
    }
    line.end();
    return report(session, output, runner, first.end);
  } finally {
    over.abort();
    line.end();
    signals.stop();
  }
}

function report(session: Session, output: Output, runner: StartedRunner, end: RunnerEnd): number {
  const ui = session.link(runner.workflowId, runner.runId);
  output.result(
    { id: runner.workflowId, runId: runner.runId, attached: runner.attached, ...end, ...defined({ ui }) },
    [`${runner.workflowId} ${[end.outcome, end.cause].filter(Boolean).join('/')}: ${end.message}`],
  );
  return exitStatusOf(end);
}

async function leave(line: PhaseLine, runner: StartedRunner, requests: CancelRequests): Promise<number> {
  const delivered = await requests.settled(LAST_WORDS_MS);
  line.end();
  line.message(
    'left',
    delivered
      ? `left: ${runner.workflowId} keeps its cancel request; see it with: holdfast runner get ${runner.workflowId}`
      : `left, and the cancel request was not delivered: Temporal does not answer; send it with: holdfast runner cancel ${runner.workflowId}`,
  );
  return EXIT.failed;
}

/** Installs the signal handlers. They stay until `stop`, so that no signal between two of them kills us half-way. */
function listen(line: PhaseLine, requests: CancelRequests, sameMs: number): { leave: Promise<Leave>; stop: () => void } {
  let presses = 0;
  let last: number | undefined;
  let resolve: (leave: Leave) => void;
  const leaving = new Promise<Leave>((done) => (resolve = done));
  const onSigint = (): void => {
    const now = performance.now();
    const { kind } = onInterrupt(presses, last === undefined ? undefined : now - last, sameMs);
    if (kind === 'ignore') return;
    presses += 1;
    last = now;
    if (kind === 'exit') return resolve({ kind: 'exit' });
    requests.send(kind);
    line.message(kind, kind === 'drain' ? 'draining: the job may finish; press Ctrl-C again to stop it' : 'stopping: the job gets its grace to end; press Ctrl-C again to leave it alone and exit');
  };
  const onSigterm = (): void => resolve({ kind: 'detach', signal: 'SIGTERM' });
  const onSighup = (): void => resolve({ kind: 'detach', signal: 'SIGHUP' });
  process.on('SIGINT', onSigint).on('SIGTERM', onSigterm).on('SIGHUP', onSighup);
  return {
    leave: leaving,
    stop: () => void process.off('SIGINT', onSigint).off('SIGTERM', onSigterm).off('SIGHUP', onSighup),
  };
}

/** Cancel requests on their way. A server that does not answer is asked until it does. */
class CancelRequests {
  private readonly session: Session;
  private readonly workflowId: string;
  private readonly over: AbortSignal;
  private readonly onProblem: (mode: CancelMode, problem: string) => void;
  private readonly sending: Promise<boolean>[] = [];

  constructor(session: Session, workflowId: string, over: AbortSignal, onProblem: (mode: CancelMode, problem: string) => void) {
    this.session = session;
    this.workflowId = workflowId;
    this.over = over;
    this.onProblem = onProblem;
  }

  send(mode: CancelMode): void {
    this.sending.push(this.deliver(mode));
  }

  /** Whether the last request, the strongest, was delivered within `ms`. */
  async settled(ms: number): Promise<boolean> {
    const giveUp = new AbortController();
    const result = await Promise.race([this.sending.at(-1) ?? Promise.resolve(true), pause(ms, giveUp.signal).then(() => false)]);
    giveUp.abort();
    return result;
  }

  private async deliver(mode: CancelMode): Promise<boolean> {
    const handle = this.session.client.workflow.getHandle(this.workflowId);
    const reason = mode === 'drain' ? 'Ctrl-C in holdfast run' : 'Ctrl-C again in holdfast run';
    let told = false;
    while (!this.over.aborted) {
      try {
        await this.session.attempt(() => handle.signal(cancelSignal, { mode, reason }), 5_000);
        return true;
      } catch (error) {
        const known = toCliError(error, this.session.about(this.workflowId));
        if (known.code === 'not_found') return true; // it has ended meanwhile
        if (!told) this.onProblem(mode, known.message);
        told = true;
        await pause(REFRESH_MS, this.over);
      }
    }
    return false;
  }
}

/** Shows the phase again and again. Never resolves: the end is told by the result. @throws nothing; trouble is shown in the line */
async function watch(session: Session, workflowId: string, line: PhaseLine, over: AbortSignal, lost: () => boolean): Promise<never> {
  let phase = 'Requested';
  while (!over.aborted) {
    const seen = await look(session, workflowId, phase, lost());
    if (over.aborted) break;
    phase = seen.phase;
    line.show(seen);
    await pause(REFRESH_MS, over);
  }
  return new Promise<never>(() => {});
}

async function look(session: Session, workflowId: string, phase: string, lost: boolean): Promise<Seen> {
  try {
    const status = await queryStatus(session, workflowId);
    if (status !== undefined) return { phase: status.phase, status };
    const description = await session.attempt((client) => client.workflow.getHandle(workflowId).describe(), QUERY_TIMEOUT_MS);
    return { phase: description.typedSearchAttributes.get(SEARCH_ATTRIBUTES.phase) ?? phase, problem: 'no worker answers' };
  } catch (error) {
    if (lost || isConnectionLoss(error)) return { phase, problem: 'Temporal does not answer' };
    return { phase, problem: toCliError(error, session.about(workflowId)).message };
  }
}
