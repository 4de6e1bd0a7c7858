/** The simulator as a child process, without rate limits that would dominate the measurement. */
import { spawn, type ChildProcess } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { SimulatorClient } from '../../simulator/client.ts';
import type { SimulatorOptions } from '../../simulator/options.ts';
import { cleanEnvironment, end, track } from './child.ts';

const MAIN = fileURLToPath(new URL('../../simulator/main.ts', import.meta.url));

/** A scale-up of 2,500 runners exceeds GitHub's 5,000 requests an hour. */
const OPTIONS: SimulatorOptions = { rateLimit: { limit: 100_000_000 } };

/** The simulator as a child process. */
export class SimulatorProcess {
  readonly client: SimulatorClient;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, url: string) {
    this.#child = child;
    this.client = new SimulatorClient(url);
  }

  static async start(configFile: string, logFile: string): Promise<SimulatorProcess> {
    await writeFile(configFile, JSON.stringify(OPTIONS));
    const child = track(
      spawn(process.execPath, [MAIN, '--config', configFile], {
        env: cleanEnvironment(/^$/),
        stdio: ['ignore', 'pipe', 'pipe'],
      }),
    );
    if (!child.stdout || !child.stderr) throw new Error('the simulator has no output');
    child.stderr.pipe(createWriteStream(logFile, { flags: 'a' }));
    const lines = createInterface({ input: child.stdout });
    const url = await new Promise<string>((resolve, reject) => {
      lines.once('line', (line) => resolve((JSON.parse(line) as { url: string }).url));
      child.once('exit', (code, signal) =>
        reject(new Error(`the simulator ended (${code ?? signal}); see ${logFile}`)),
      );
    });
    return new SimulatorProcess(child, url);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  async stop(): Promise<void> {
    await end(this.#child, 'SIGTERM');
  }
}
