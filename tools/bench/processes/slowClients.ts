import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { cleanEnvironment, end, track } from './child.ts';

const MAIN = fileURLToPath(new URL('./slowClientsProcess.ts', import.meta.url));

/** Current state of the clients. */
export interface SlowClientsState {
  /** Number of open connections. */
  readonly open: number;
  /** Number of deliveries begun. */
  readonly begun: number;
  /** Number of responses by status. */
  readonly answers: Readonly<Record<string, number>>;
}

/** Untrusted clients of the webhook that send slowly (slowClientsProcess.ts). */
export class SlowClients {
  readonly #child: ChildProcess;
  now: SlowClientsState = { open: 0, begun: 0, answers: {} };

  constructor(url: URL, connections: number) {
    this.#child = track(
      spawn(process.execPath, [MAIN, url.href, String(connections)], {
        env: cleanEnvironment(/^$/),
        stdio: ['ignore', 'pipe', 'inherit'],
      }),
    );
    if (!this.#child.stdout) throw new Error('the slow clients have no output');
    createInterface({ input: this.#child.stdout }).on(
      'line',
      (line) => (this.now = JSON.parse(line) as SlowClientsState),
    );
  }

  async stop(): Promise<void> {
    await end(this.#child, 'SIGKILL');
  }
}
