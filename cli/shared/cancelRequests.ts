/** Cancel requests of an attached command, delivered in the background. */
import { cancelSignal, type CancelMode } from '../../core/contract/index.ts';
import { sleep } from './followRunner.ts';
import type { Session } from './session.ts';
import type { StartedRunner } from '../runner/startRunner.ts';
import { toCliError } from './temporalErrors.ts';

/** Interval between attempts to deliver a request (ms). */
const RETRY_MS = 1_000;

/** Cancel requests to one workflow. They are retried while Temporal does not answer. */
export class CancelRequests {
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
        await sleep(RETRY_MS, this.over);
      }
    }
    return false;
  }
}
