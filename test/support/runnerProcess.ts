import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Simulator } from '../../tools/simulator/simulator.ts';

const PROGRAM = fileURLToPath(new URL('../../tools/simulator/runner.ts', import.meta.url));

/** The simulator's runner program as a process. */
export class RunnerProcess {
  readonly child: ChildProcess;
  /** Settles when the process has ended. */
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  output = '';
  readonly #listeners = new Set<() => void>();

  constructor(env: Readonly<Record<string, string>>) {
    this.child = spawn(process.execPath, [PROGRAM], {
      env: { PATH: process.env['PATH'], ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.output += text;
        for (const listener of this.#listeners) listener();
      });
    }
    this.exited = new Promise((resolve) =>
      this.child.once('close', (code, signal) => resolve({ code, signal })),
    );
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** Waits until it has printed this text. @throws Error if it ends before */
  async printed(text: string): Promise<void> {
    if (this.output.includes(text)) return;
    const seen = new Promise<boolean>((resolve) =>
      this.#listeners.add(() => this.output.includes(text) && resolve(true)),
    );
    if (!(await Promise.race([seen, this.exited.then(() => this.output.includes(text))])))
      throw new Error(`the runner ended without printing ${text}:\n${this.output}`);
  }
}

/** Calls the simulator's REST API as an owner with access to everything. */
export async function asOwner(
  url: string,
  method: string,
  path: string,
  body?: unknown,
): Promise<{ status: number; body: any }> {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: { authorization: 'Bearer ghp_simulator', 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text) };
}

/**
 * Creates a JIT registration in `orgs/acme`.
 * @returns the runner's environment and its id
 */
export async function jitEnv(
  url: string,
  name: string,
  labels: string[] = ['self-hosted'],
): Promise<{ env: Record<string, string>; id: number }> {
  const { status, body } = await asOwner(
    url,
    'POST',
    '/orgs/acme/actions/runners/generate-jitconfig',
    { name, runner_group_id: 1, labels },
  );
  if (status !== 201)
    throw new Error(`generate-jitconfig answered ${status} ${JSON.stringify(body)}`);
  return {
    env: { ACTIONS_RUNNER_INPUT_JITCONFIG: body.encoded_jit_config as string },
    id: body.runner.id as number,
  };
}

/** The environment of a runner that registers itself in `orgs/acme` with a token. */
export async function tokenEnv(
  simulator: Simulator,
  name: string,
  more: Record<string, string> = {},
): Promise<Record<string, string>> {
  const { body } = await asOwner(
    simulator.url,
    'POST',
    '/orgs/acme/actions/runners/registration-token',
  );
  return {
    RUNNER_TOKEN: body.token as string,
    RUNNER_URL: `${simulator.url}/acme`,
    RUNNER_NAME: name,
    RUNNER_EPHEMERAL: 'false',
    ...more,
  };
}
