import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { cleanEnvironment, end, track } from './child.ts';

const MAIN = fileURLToPath(new URL('./slowClientsProcess.ts', import.meta.url));

export interface SlowSendersNow {
  /** Connections that are open now. */
  readonly open: number;
  /** Deliveries that were begun so far. */
  readonly begun: number;
  /** How many were answered so, by status. */
  readonly answers: Readonly<Record<string, number>>;
}

/** Strangers at the webhook: see slowClientsProcess.ts. */
export class SlowClients {
  readonly #child: ChildProcess;
  now: SlowSendersNow = { open: 0, begun: 0, answers: {} };

  constructor(url: URL, connections: number) {
    this.#child = track(
      spawn(process.execPath, [MAIN, url.href, String(connections)], {
        env: cleanEnvironment(/^$/),
        stdio: ['ignore', 'pipe', 'inherit'],
      }),
    );
    if (!this.#child.stdout) throw new Error('the slow senders have no output');
    createInterface({ input: this.#child.stdout }).on(
      'line',
      (line) => (this.now = JSON.parse(line) as SlowSendersNow),
    );
  }

  async stop(): Promise<void> {
    await end(this.#child, 'SIGKILL');
  }
}
