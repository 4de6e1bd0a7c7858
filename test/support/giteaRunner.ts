import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { resolveBinary } from '../../tools/lab/resolve.ts';

/** The script that Gitea's image runs. */
export const GITEA_RUNNER_SCRIPT = join(
  import.meta.dirname,
  '../../deploy/images/gitea-runner-entrypoint.sh',
);

/** PATH with Gitea's official runner. */
export async function pathWithGiteaRunner(): Promise<string> {
  const runner = await resolveBinary('gitea-runner');
  return [dirname(runner), process.env['PATH']].join(delimiter);
}

/** Gitea's official runner as a process, started with only the adapter's data. */
export class GiteaRunnerProcess {
  readonly #child: ChildProcess;
  readonly #home: string;

  private constructor(child: ChildProcess, home: string) {
    this.#child = child;
    this.#home = home;
  }

  static async start(env: Readonly<Record<string, string>>): Promise<GiteaRunnerProcess> {
    const home = await mkdtemp(join(tmpdir(), 'holdfast-gitea-'));
    const child = spawn(GITEA_RUNNER_SCRIPT, [], {
      env: { ...env, PATH: await pathWithGiteaRunner(), RUNNER_HOME: home },
      stdio: 'ignore',
      detached: true,
    });
    return new GiteaRunnerProcess(child, home);
  }

  /** Kills it with its job. */
  async stop(): Promise<void> {
    const { pid, exitCode, signalCode } = this.#child;
    if (pid !== undefined && exitCode === null && signalCode === null) {
      const exited = once(this.#child, 'exit');
      process.kill(-pid, 'SIGKILL');
      await exited;
    }
    await rm(this.#home, { recursive: true, force: true });
  }
}
