/** Signals of an attached command: they drain or stop the followed object, or end the command. */
import {
  debounceMs,
  interruptAction,
  sigtermAction,
  type InterruptSource,
  type OnSigterm,
} from './interrupts.ts';
import type { ProgressLine } from './phaseLine.ts';
import type { AttachTarget } from './attachTarget.ts';
import type { CancelRequests } from './cancelRequests.ts';

/** Why the command ends before the followed object. */
export type ExitReason =
  { readonly kind: 'exit' } | { readonly kind: 'detach'; readonly signal: 'SIGTERM' | 'SIGHUP' };

/**
 * Signal handlers. They stay installed until {@link stop}, so that no signal ends the process in
 * between.
 */
export class AttachSignals {
  /** Resolves when a signal ends the command. */
  readonly leave: Promise<ExitReason>;
  readonly #line: ProgressLine;
  readonly #requests: CancelRequests;
  readonly #drains: string;
  readonly #onSigterm: OnSigterm;
  readonly #source: InterruptSource;
  #resolve: (leave: ExitReason) => void = () => {};
  /** Number of SIGINTs that counted, and the time of the last of them (ms). */
  #presses = 0;
  #lastPress: number | undefined;
  #terms = 0;

  /** Installs the handlers. */
  constructor(
    line: ProgressLine,
    requests: CancelRequests,
    { drains }: AttachTarget,
    onSigterm: OnSigterm,
    env: Readonly<Record<string, string | undefined>>,
  ) {
    const onTerminal = process.stdin.isTTY;
    this.#line = line;
    this.#requests = requests;
    this.#drains = drains;
    this.#onSigterm = onSigterm;
    this.#source = { onTerminal, debounceMs: debounceMs(env, onTerminal) };
    this.leave = new Promise((resolve) => (this.#resolve = resolve));
    process.on('SIGINT', this.#onSigint).on('SIGTERM', this.#onTerm).on('SIGHUP', this.#onSighup);
  }

  /** Removes the handlers. */
  stop(): void {
    process
      .off('SIGINT', this.#onSigint)
      .off('SIGTERM', this.#onTerm)
      .off('SIGHUP', this.#onSighup);
  }

  readonly #onSigint = (): void => {
    const now = performance.now();
    const sinceLastMs = this.#lastPress === undefined ? undefined : now - this.#lastPress;
    const { kind } = interruptAction(this.#presses, sinceLastMs, this.#source);
    if (kind === 'ignore') return;
    this.#presses += 1;
    this.#lastPress = now;
    const { onTerminal } = this.#source;
    if (kind === 'exit') this.#resolve({ kind: 'exit' });
    else if (kind === 'drain')
      this.#request('drain', 'Ctrl-C', `draining: ${this.#drains}; press Ctrl-C again to stop it`);
    else
      this.#request(
        'stop',
        onTerminal ? 'Ctrl-C again' : 'SIGINT',
        `stopping: the job has its grace period to end; ${onTerminal ? 'press Ctrl-C again' : 'send SIGINT again'} to exit without waiting`,
      );
  };

  readonly #onTerm = (): void => {
    if (sigtermAction(this.#terms++, this.#onSigterm) === 'detach')
      return this.#resolve({ kind: 'detach', signal: 'SIGTERM' });
    this.#request(
      'stop',
      'SIGTERM',
      'stopping: the job has its grace period to end; send SIGTERM again to detach',
    );
  };

  readonly #onSighup = (): void => this.#resolve({ kind: 'detach', signal: 'SIGHUP' });

  #request(mode: 'drain' | 'stop', cause: string, what: string): void {
    this.#requests.send(mode, cause);
    this.#line.message(
      mode,
      this.#requests.isBegun
        ? what
        : `${what} (its start is not confirmed yet; the request follows it)`,
    );
  }
}
