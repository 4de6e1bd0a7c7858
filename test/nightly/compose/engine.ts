import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { resolveBinary } from '../../../tools/lab/resolve.ts';
import { until } from '../../support/until.ts';

export const PROJECT = fileURLToPath(new URL('../../..', import.meta.url));

export interface Ran {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * A Docker engine of the check's own, on a socket and in a folder of its own. It leaves the machine's packet filter alone, and so has no way out for containers but
 * the machine's own network, which builds get.
 */
export class Engine {
  readonly #process: ChildProcess;
  readonly #compose: string;
  readonly #env: NodeJS.ProcessEnv;
  readonly #folder: string;

  private constructor(
    daemon: ChildProcess,
    compose: string,
    env: NodeJS.ProcessEnv,
    folder: string,
  ) {
    this.#process = daemon;
    this.#compose = compose;
    this.#env = env;
    this.#folder = folder;
  }

  /**
   * @param folder - of its data, which stays there
   * @param dns - address of who answers containers about names of the world
   * @throws Error that says what to install
   */
  static async start(folder: string, dns?: string): Promise<Engine> {
    const compose = await resolveBinary('docker-compose', {
      progress: (line) => process.stderr.write(`[lab] ${line}\n`),
    });
    await mkdir(folder, { recursive: true });
    const socket = `unix://${join(folder, 'docker.sock')}`;
    const paths = [
      '--data-root',
      join(folder, 'data'),
      '--exec-root',
      join(folder, 'exec'),
      '--pidfile',
      join(folder, 'docker.pid'),
    ];
    const log = join(folder, 'dockerd.log');
    await writeFile(log, '');
    const daemon = spawn(
      'sh',
      [
        '-c',
        'log=$1; shift; exec dockerd "$@" >>"$log" 2>&1',
        'dockerd',
        log,
        '--host',
        socket,
        ...paths,
        '--iptables=false',
        '--ip6tables=false',
        '--ip-forward=false',
        '--bridge=none',
        ...(dns === undefined ? [] : ['--dns', dns]),
      ],
      { stdio: 'ignore' },
    );
    let ended = false;
    daemon.once('close', () => (ended = true));
    // Whoever ends the check ends the engine.
    process.once('exit', () => void daemon.kill('SIGTERM'));
    for (const [signal, status] of [
      ['SIGINT', 130],
      ['SIGTERM', 143],
    ] as const)
      process.once(signal, () => process.exit(status));
    const engine = new Engine(
      daemon,
      compose,
      { ...process.env, DOCKER_HOST: socket, DOCKER_BUILDKIT: '0', COMPOSE_DOCKER_CLI_BUILD: '0' },
      folder,
    );
    await until(
      'the Docker engine to answer',
      async () => ended || (await engine.run('docker', ['version'])).status === 0,
    );
    if (ended)
      throw new Error(
        `no Docker engine (apt-get install --no-install-recommends docker.io; it needs root):\n${(await readFile(log, 'utf8')).split('\n').slice(-10).join('\n')}`,
      );
    return engine;
  }

  /** Runs a command against this engine, to its end. @param onLine - is told each line of its standard output as it comes */
  async run(
    program: string,
    args: readonly string[],
    env: Readonly<Record<string, string>> = {},
    onLine?: (line: string) => void,
  ): Promise<Ran> {
    try {
      const running = promisify(execFile)(program, args, {
        cwd: PROJECT,
        env: { ...this.#env, ...env },
        maxBuffer: 64 * 1024 * 1024,
      });
      const { stdout: lines } = running.child;
      if (onLine !== undefined && lines !== null)
        createInterface({ input: lines }).on('line', onLine);
      const { stdout, stderr } = await running;
      return { status: 0, stdout, stderr };
    } catch (error) {
      const {
        code,
        stdout = '',
        stderr = '',
      } = error as { code?: unknown; stdout?: string; stderr?: string };
      if (typeof code !== 'number') throw error;
      return { status: code, stdout, stderr };
    }
  }

  /** @returns what it printed @throws Error with what it printed, where it fails */
  async docker(...args: string[]): Promise<string> {
    return succeeded(['docker', ...args], await this.run('docker', args));
  }

  /**
   * Builds on base images that were made here, so without the digests of the published ones.
   * @param dockerfile - path in the project
   * @param onStep - receives each step that runs a command, as Docker names it
   */
  async build(dockerfile: string, image: string, onStep: (step: string) => void): Promise<void> {
    const copy = join(this.#folder, 'Dockerfile');
    await writeFile(copy, withoutDigests(await readFile(join(PROJECT, dockerfile), 'utf8')));
    // What a container needs of the network it has from the machine: the engine has none of its own.
    const args = ['build', '--network', 'host', '--file', copy, '--tag', image, '.'];
    succeeded(
      ['docker', ...args],
      await this.run(
        'docker',
        args,
        {},
        (line) => / : RUN /.test(line) && onStep(line.slice(0, 120)),
      ),
    );
  }

  /** Docker Compose on docker-compose.yml. */
  async compose(env: Readonly<Record<string, string>>, ...args: string[]): Promise<string> {
    return succeeded(['docker compose', ...args], await this.run(this.#compose, args, env));
  }

  async has(image: string): Promise<boolean> {
    return (await this.run('docker', ['image', 'inspect', image])).status === 0;
  }

  async stop(): Promise<void> {
    const ended = once(this.#process, 'close');
    this.#process.kill('SIGTERM');
    await ended;
    // Docker leaves namespaces mounted, and then the folder cannot be removed.
    const mounted = (await readFile('/proc/self/mounts', 'utf8'))
      .split('\n')
      .map((line) => line.split(' ')[1] ?? '');
    for (const path of mounted.filter((each) => each.startsWith(`${this.#folder}/`)))
      await promisify(execFile)('umount', [path]);
  }
}

/** @param text - a Dockerfile, or one reference of an image */
export const withoutDigests = (text: string): string => text.replace(/@sha256:[0-9a-f]{64}/g, '');

function succeeded(command: readonly string[], { status, stdout, stderr }: Ran): string {
  if (status !== 0)
    throw new Error(
      `${command.join(' ')}: ${status}\n${`${stdout}${stderr}`.split('\n').slice(-40).join('\n')}`,
    );
  return stdout;
}
