import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../tools/lab/ports.ts';
import { until } from './until.ts';

/** Prometheus, which scrapes some processes every second. */
export class Prometheus {
  readonly url: string;
  readonly #folder = mkdtempSync(join(tmpdir(), 'holdfast-prometheus-'));
  readonly #process: ReturnType<typeof spawn>;
  #log = '';

  private constructor(port: number, targets: readonly string[]) {
    this.url = `http://127.0.0.1:${port}`;
    const config = join(this.#folder, 'prometheus.yml');
    writeFileSync(
      config,
      JSON.stringify({
        global: { scrape_interval: '1s' },
        scrape_configs: [{ job_name: 'holdfast', static_configs: [{ targets }] }],
      }),
    );
    this.#process = spawn(
      'prometheus',
      [
        `--config.file=${config}`,
        `--storage.tsdb.path=${join(this.#folder, 'data')}`,
        `--web.listen-address=127.0.0.1:${port}`,
      ],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    );
    this.#process.stderr?.on('data', (chunk: Buffer) => (this.#log += chunk.toString('utf8')));
  }

  /** @param targets - `host:port` of each */
  static async start(targets: readonly string[]): Promise<Prometheus> {
    const prometheus = new Prometheus(await freePort(), targets);
    await until(
      'Prometheus to be ready',
      async () => (await fetch(`${prometheus.url}/-/ready`)).ok,
      () => prometheus.#log,
    );
    return prometheus;
  }

  /** Returns the current values of a query. */
  async query(expression: string): Promise<number[]> {
    const answer = await fetch(`${this.url}/api/v1/query?query=${encodeURIComponent(expression)}`);
    const { data } = (await answer.json()) as { data: { result: { value: [number, string] }[] } };
    return data.result.map(({ value: [, value] }) => Number(value));
  }

  async stop(): Promise<void> {
    this.#process.kill('SIGTERM');
    if (this.#process.exitCode === null) await once(this.#process, 'exit');
    rmSync(this.#folder, { recursive: true });
  }
}
