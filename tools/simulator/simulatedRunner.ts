import { setTimeout as sleep } from 'node:timers/promises';
import { ServerConnection } from './runner/serverConnection.ts';
import { readSettings } from './runner/settings.ts';
import {
  RUNNER_VERSION,
  type CompleteBody,
  type JobMessage,
  type RegisterResponse,
  type RegisterBody,
  type RunnerMessage,
  type SessionResponse,
  type SessionBody,
} from './runner/wire.ts';

/**
 * How a simulated runner ended: after its one job; by `stop` or `kill`; because its registration
 * was removed; rejected by the server.
 */
export type SimulatedRunnerEnd = 'done' | 'stopped' | 'deleted' | 'refused';

export interface SimulatedRunnerHooks {
  /** Called at the start of each session, also after the server was unreachable. */
  onOnline?: () => void;
  onJobStart?: (job: JobMessage) => void;
  onJobEnd?: (job: JobMessage) => void;
}

/** Functions of the fleet that a runner calls. */
export interface FleetLink {
  readonly url: string;
  readonly closed: AbortSignal;
  channel(): Promise<string>;
  attach(sessionId: string, runner: SimulatedRunner): void;
  detach(sessionId: string): void;
}

type Result = CompleteBody['result'];
type Env = Readonly<Record<string, string | undefined>>;

const RETRY_MS = 200;

/** One runner of a `Fleet`, created by `Fleet.start`. */
export class SimulatedRunner {
  /** Settles when it is over; never rejects. */
  readonly ended: Promise<SimulatedRunnerEnd>;
  readonly #fleet: FleetLink;
  readonly #hooks: SimulatedRunnerHooks;
  #server: ServerConnection;
  #sessionId = '';
  #ephemeral = false;
  #deleted = false;
  #job: JobMessage | undefined;
  #finishJob: (result: Result) => void = () => undefined;
  #settle: (end: SimulatedRunnerEnd) => void = () => undefined;
  #over = false;

  constructor(fleet: FleetLink, env: Env, hooks: SimulatedRunnerHooks) {
    this.#fleet = fleet;
    this.#hooks = hooks;
    this.#server = new ServerConnection(fleet.url);
    this.ended = new Promise((resolve) => {
      this.#settle = resolve;
    });
    void this.#guard(this.#start(env));
  }

  /**
   * Does what SIGTERM does: an idle runner ends and keeps its registration; a busy one first ends
   * its job as Canceled.
   */
  async stop(): Promise<void> {
    if (this.#over) return;
    this.#ephemeral = true;
    if (this.#job) {
      this.#finishJob('Canceled');
      await this.ended;
      return;
    }
    this.#end('stopped');
    if (this.#sessionId !== '')
      await this.#guard(this.#post(`session/${this.#sessionId}`, undefined, 'DELETE'));
  }

  /**
   * Does what SIGKILL or a lost node does: the runner becomes silent, without a message to the
   * server.
   */
  kill(): void {
    if (this.#over) return;
    this.#end('stopped');
    this.#finishJob('Canceled');
    if (this.#sessionId !== '' && !this.#fleet.closed.aborted)
      void this.#guard(this.#post(`session/${this.#sessionId}/detach`));
  }

  /** Called by the fleet with each message. */
  receive(message: RunnerMessage): void {
    if (this.#over) return;
    if (message.type === 'job') void this.#guard(this.#run(message));
    else if (message.type === 'cancel') {
      if (this.#job?.id === message.jobId) this.#finishJob('Canceled');
    } else if (this.#job) this.#deleted = true;
    else this.#end('deleted');
  }

  /** Called by the fleet when its channel was lost: opens a new session on the next one. */
  reconnect(): Promise<void> {
    return this.#guard(this.#openSession());
  }

  async #start(env: Env): Promise<void> {
    const settings = readSettings(env, []);
    if (settings.mode === 'registered')
      this.#server = new ServerConnection(this.#fleet.url, settings.credential);
    else {
      const { scope, token, name, labels, ephemeral, replace, version } = settings;
      const body: RegisterBody = {
        scope,
        token,
        name,
        labels,
        ephemeral,
        replace,
        version,
        ...(settings.group === undefined ? {} : { group: settings.group }),
      };
      const answer = await this.#post('register', body);
      if (answer.status !== 201) return this.#end('refused');
      this.#server = new ServerConnection(
        this.#fleet.url,
        (answer.body as RegisterResponse).credential,
      );
    }
    await this.#openSession();
  }

  async #openSession(): Promise<void> {
    while (!this.#over) {
      const body: SessionBody = {
        version: RUNNER_VERSION,
        os: 'linux',
        arch: 'x64',
        channel: await this.#fleet.channel(),
      };
      const answer = await this.#post('session', body);
      if (answer.status === 200) {
        const session = answer.body as SessionResponse;
        this.#ephemeral ||= session.ephemeral;
        this.#sessionId = session.sessionId;
        if (this.#over) return;
        this.#fleet.attach(session.sessionId, this);
        this.#hooks.onOnline?.();
        return;
      }
      if (answer.status === 404) return this.#end('deleted');
      if (answer.status === 403) return this.#end('refused');
      await sleep(RETRY_MS); // an older session of this runner is still open, or the channel has just gone
    }
  }

  async #run(job: JobMessage): Promise<void> {
    this.#job = job;
    const finished = new Promise<Result>((resolve) => {
      this.#finishJob = resolve;
    });
    const start = await this.#post(`jobs/${job.id}/start`);
    if (start.status === 204 && !this.#over) {
      this.#hooks.onJobStart?.(job);
      const timer = setTimeout(
        () => this.#finishJob(job.plannedResult ?? 'Succeeded'),
        job.sleepMs ?? 0,
      );
      const renewal = setInterval(
        () => void this.#guard(this.#post(`jobs/${job.id}/renew`)),
        job.renewEveryMs,
      );
      const result = await finished;
      clearTimeout(timer);
      clearInterval(renewal);
      if (this.#over) return;
      await this.#post(`jobs/${job.id}/complete`, { result } satisfies CompleteBody);
      this.#hooks.onJobEnd?.(job);
    }
    this.#job = undefined;
    if (this.#ephemeral) this.#end('done');
    else if (this.#deleted) this.#end('deleted');
  }

  #post(
    path: string,
    body?: unknown,
    method: 'POST' | 'DELETE' = 'POST',
  ): Promise<{ status: number; body: unknown }> {
    return this.#server.request(method, path, {
      signal: this.#fleet.closed,
      ...(body === undefined ? {} : { body }),
    });
  }

  #end(end: SimulatedRunnerEnd): void {
    this.#over = true;
    this.#fleet.detach(this.#sessionId);
    this.#settle(end);
  }

  /** A fleet that is closed aborts whatever its runners were doing. */
  async #guard(work: Promise<unknown>): Promise<void> {
    try {
      await work;
    } catch (error) {
      if (!this.#fleet.closed.aborted) throw error;
      this.#end('stopped');
    }
  }
}
