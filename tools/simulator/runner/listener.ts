import { setTimeout as sleep } from 'node:timers/promises';
import { JobRun } from './jobRun.ts';
import { register, printDeprecation, TERMINATED } from './registration.ts';
import { ServerConnection } from './serverConnection.ts';
import type { RunnerSettings } from './settings.ts';
import type { JobMessage, Rejection, RunnerMessage, SessionResponse, SessionBody } from './wire.ts';

/** Maximum time for which the official runner waits for the end of its other session (ms). */
const CONFLICT_LIMIT_MS = 240_000;
const CONFLICT_RETRY_MS = 5000;

/**
 * Runs a runner: registers, listens, runs jobs and ends. Output and exit codes are those of the
 * official runner.
 */
export class Listener {
  readonly #settings: RunnerSettings;
  readonly #print: (line: string) => void;
  #server: ServerConnection;
  #ephemeral: boolean;
  #sessionId = '';
  #current: JobRun | undefined;
  #currentEnded: Promise<void> = Promise.resolve();
  #jobs = 0;
  /** Aborted when the runner must end its long poll. */
  readonly #leave = new AbortController();

  constructor(settings: RunnerSettings, print: (line: string) => void) {
    this.#settings = settings;
    this.#print = print;
    this.#ephemeral = settings.ephemeral;
    this.#server = new ServerConnection(
      settings.serverUrl,
      settings.mode === 'registered' ? settings.credential : undefined,
    );
  }

  /** @returns the exit code */
  async run(): Promise<number> {
    try {
      if (this.#settings.mode === 'token') {
        const failed = await this.#register();
        if (failed !== undefined) return failed;
      }
      return await this.#listen();
    } catch (error) {
      if (!this.#leave.signal.aborted) throw error;
      return this.#goodbye();
    }
  }

  /**
   * Handles SIGINT and SIGTERM: an idle runner ends and keeps its registration; a busy one stops
   * its job first.
   */
  stop(): void {
    this.#print('Exiting...');
    if (this.#current) this.#current.stop(true);
    this.#ephemeral = true; // no further job
    if (!this.#current) this.#leave.abort();
  }

  async #register(): Promise<number | undefined> {
    if (this.#settings.mode !== 'token') return undefined;
    const answer = await register(this.#settings, this.#print, this.#leave.signal);
    if (typeof answer === 'number') return answer;
    this.#server = new ServerConnection(this.#settings.serverUrl, answer.credential);
    return undefined;
  }

  async #listen(): Promise<number> {
    const refused = await this.#openSession();
    if (refused !== undefined) return refused;
    this.#print('');
    this.#print('√ Connected to GitHub');
    this.#print('');
    this.#print(`Current runner version: '${this.#settings.version}'`);
    this.#print(`${now()}: Listening for Jobs`);
    for (;;) {
      const message = await this.#poll();
      if (message === undefined) continue;
      if (message.type === 'job') this.#start(message);
      else if (message.type === 'cancel') this.#cancel(message.jobId);
      else {
        const code = await this.#refused(message.reason);
        if (code !== undefined) return code;
      }
    }
  }

  async #openSession(): Promise<number | undefined> {
    const body: SessionBody = {
      version: this.#settings.version,
      os: process.platform,
      arch: process.arch,
    };
    for (const startedMs = Date.now(); ;) {
      const answer = await this.#server.request('POST', 'session', {
        body,
        signal: this.#leave.signal,
      });
      if (answer.status === 200) {
        const session = answer.body as SessionResponse;
        this.#sessionId = session.sessionId;
        this.#ephemeral ||= session.ephemeral;
        return undefined;
      }
      const { reason } = answer.body as Rejection;
      if (reason === 'deprecated') return printDeprecation(this.#settings, this.#print);
      if (reason === 'deleted') {
        await this.#currentEnded;
        this.#print(
          'Failed to create a session. The runner registration has been deleted from the server, please re-configure. Runner registrations are automatically deleted for runners that have not connected to the service recently.',
        );
        this.#print(TERMINATED);
        return 0;
      }
      this.#print(`${now()}: A session for this runner already exists.`);
      if (Date.now() - startedMs > CONFLICT_LIMIT_MS) {
        this.#print(
          'Runner listener exit with Session Conflict error, stop the service, no retry needed.',
        );
        return 0;
      }
      await sleep(CONFLICT_RETRY_MS, undefined, { signal: this.#leave.signal });
    }
  }

  async #poll(): Promise<RunnerMessage | undefined> {
    const answer = await this.#server.request('GET', `message/${this.#sessionId}`, {
      signal: this.#leave.signal,
    });
    if (answer.status === 200) return answer.body as RunnerMessage;
    if (answer.status === 204) return undefined;
    return { type: 'refused', reason: (answer.body as Rejection).reason };
  }

  /** @returns the exit code, or undefined to go on listening */
  async #refused(reason: Rejection['reason']): Promise<number | undefined> {
    if (reason === 'session') return this.#openSession();
    if (reason === 'deprecated') return printDeprecation(this.#settings, this.#print);
    await this.#currentEnded;
    if (this.#ephemeral && this.#jobs > 0) return this.#goodbye();
    this.#print(TERMINATED);
    return 0;
  }

  #start(message: JobMessage): void {
    if (this.#current || this.#leave.signal.aborted) return; // one job at a time: its assignment lapses
    const run = new JobRun(message, this.#settings, this.#server);
    this.#current = run;
    this.#print(`${now()}: Running job: ${message.name}`);
    this.#currentEnded = run.run().then((result) => {
      if (result !== undefined) this.#jobs++;
      this.#print(`${now()}: Job ${message.name} completed with result: ${result ?? 'Canceled'}`);
      this.#current = undefined;
      if (this.#ephemeral) this.#leave.abort();
    });
  }

  #cancel(jobId: number): void {
    if (this.#current?.job.id === jobId) this.#current.stop(false);
  }

  async #goodbye(): Promise<number> {
    await this.#currentEnded;
    if (this.#sessionId !== '') {
      const limit = AbortSignal.timeout(2000);
      await this.#server
        .request('DELETE', `session/${this.#sessionId}`, { signal: limit })
        .catch((error: unknown) => {
          if (!limit.aborted) throw error;
        });
    }
    this.#print('Runner listener exit with 0 return code, stop the service, no retry needed.');
    this.#print('Exiting runner...');
    return 0;
  }
}

/** As the real runner prints it: `2026-01-31 12:00:00Z`. */
const now = (): string => `${new Date().toISOString().slice(0, 19).replace('T', ' ')}Z`;
