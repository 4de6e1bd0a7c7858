import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { JobProcess } from './jobProcess.ts';
import type { ServerConnection } from './serverConnection.ts';
import type { RunnerSettings } from './settings.ts';
import type { CompleteBody, JobMessage, OutputBody } from './wire.ts';

type Result = CompleteBody['result'];

/** How often output is sent, in ms. */
const FLUSH_MS = 100;
/** Time for which an interrupted runner retries to report the end of its job (ms). */
const LAST_WORDS_MS = 10_000;

/** Runs one job: hooks, command, output, lease. */
export class JobRun {
  readonly job: JobMessage;
  readonly #settings: RunnerSettings;
  readonly #server: ServerConnection;
  #process: JobProcess | undefined;
  #stopping = false;
  #lost = false;
  readonly #leaving = new AbortController();
  #lines: string[] = [];
  #sent = 0;
  #flushing: Promise<void> = Promise.resolve();

  constructor(job: JobMessage, settings: RunnerSettings, server: ServerConnection) {
    this.job = job;
    this.#settings = settings;
    this.#server = server;
  }

  /**
   * Runs the job and reports its result.
   * @returns the result; undefined if the job is no longer assigned to this runner
   */
  async run(): Promise<Result | undefined> {
    const start = await this.#server.request('POST', `jobs/${this.job.id}/start`);
    if (start.status !== 204) return undefined;
    const renewal = setInterval(() => void this.#renew(), this.job.renewEveryMs);
    const output = setInterval(() => this.#flush(), FLUSH_MS);
    mkdirSync(tmpdir(), { recursive: true }); // a minimal image may have none
    const workspace = mkdtempSync(join(tmpdir(), 'runner-work-'));
    let result: Result;
    try {
      result = await this.#steps(workspace);
    } finally {
      clearInterval(output);
      rmSync(workspace, { recursive: true, force: true });
    }
    this.#flush();
    try {
      await this.#flushing;
      await this.#server.request('POST', `jobs/${this.job.id}/complete`, {
        body: { result } satisfies CompleteBody,
        signal: this.#leaving.signal,
      });
    } catch (error) {
      if (!this.#leaving.signal.aborted) throw error; // else the server is away and this runner must go: the lease will tell
    }
    clearInterval(renewal);
    return this.#lost ? undefined : result;
  }

  /**
   * Stops the job with the result Canceled.
   * @param leaving - whether the runner must end soon, even if the server is unreachable
   */
  stop(leaving: boolean): void {
    if (leaving) {
      const { interruptMs, terminateMs } = this.#settings.stopTimes;
      setTimeout(() => this.#leaving.abort(), interruptMs + terminateMs + LAST_WORDS_MS).unref();
    }
    if (this.#stopping) return;
    this.#stopping = true;
    this.#process?.stop();
  }

  async #steps(workspace: string): Promise<Result> {
    const env = this.#environment(workspace);
    let result = await this.#hook('started', this.#settings.hookStarted, env, workspace);
    if (result === 'Succeeded') {
      result = await this.#execute('/bin/sh', ['-c', this.job.command], env, workspace);
    }
    if (this.#lost) return result;
    // The real runner runs the completed hook also for a job that failed or was cancelled.
    const last = await this.#hook('completed', this.#settings.hookCompleted, env, workspace, true);
    return result === 'Succeeded' ? last : result;
  }

  async #hook(
    when: 'started' | 'completed',
    path: string | undefined,
    env: NodeJS.ProcessEnv,
    cwd: string,
    always = false,
  ): Promise<Result> {
    if (path === undefined) return this.#stopping && !always ? 'Canceled' : 'Succeeded';
    this.#lines.push(
      `A job ${when} hook has been configured by the self-hosted runner administrator`,
      `Run '${path}'`,
    );
    const shell = existsSync('/bin/bash') ? '/bin/bash' : '/bin/sh';
    const result = await this.#execute(shell, ['-e', path], env, cwd, always);
    if (result === 'Failed') this.#lines.push(`Error: the job ${when} hook failed`);
    return result;
  }

  async #execute(
    file: string,
    args: string[],
    env: NodeJS.ProcessEnv,
    cwd: string,
    always = false,
  ): Promise<Result> {
    if (this.#stopping && !always) return 'Canceled';
    const before = this.#stopping;
    this.#process = new JobProcess(file, args, {
      env,
      cwd,
      times: this.#settings.stopTimes,
      onLine: (line) => this.#lines.push(line),
    });
    const code = await this.#process.ended;
    this.#process = undefined;
    if (this.#stopping && !before) return 'Canceled';
    if (code === 0) return 'Succeeded';
    this.#lines.push(
      code === null
        ? 'Error: The process was ended by a signal.'
        : `Error: Process completed with exit code ${code}.`,
    );
    return 'Failed';
  }

  /** The job's environment: the runner's own without its secrets, and the usual variables. */
  #environment(workspace: string): NodeJS.ProcessEnv {
    const {
      RUNNER_TOKEN: _token,
      ACTIONS_RUNNER_INPUT_JITCONFIG: _config,
      ...inherited
    } = process.env;
    return {
      ...inherited,
      CI: 'true',
      GITHUB_ACTIONS: 'true',
      GITHUB_JOB: this.job.name,
      GITHUB_RUN_ID: String(this.job.runId),
      GITHUB_RUN_ATTEMPT: String(this.job.runAttempt),
      GITHUB_REPOSITORY: this.job.repo,
      GITHUB_WORKFLOW: this.job.workflow,
      GITHUB_WORKSPACE: workspace,
      GITHUB_SERVER_URL: this.#settings.serverUrl,
      JOB_ID: String(this.job.id),
      RUNNER_NAME: this.#settings.name,
      RUNNER_OS: 'Linux',
      RUNNER_ARCH: process.arch === 'arm64' ? 'ARM64' : 'X64',
      RUNNER_TEMP: workspace,
    };
  }

  async #renew(): Promise<void> {
    const answer = await this.#server.request('POST', `jobs/${this.job.id}/renew`);
    if (answer.status === 204 || this.#lost) return;
    this.#lost = true;
    this.stop(false);
  }

  #flush(): void {
    this.#flushing = this.#flushing.then(async () => {
      const lines = this.#lines.splice(0);
      if (lines.length === 0) return;
      const body: OutputBody = { from: this.#sent, lines };
      this.#sent += lines.length;
      await this.#server.request('POST', `jobs/${this.job.id}/output`, {
        body,
        signal: this.#leaving.signal,
      });
    });
    this.#flushing.catch(() => undefined); // awaited in run()
  }
}
