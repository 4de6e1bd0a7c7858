import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { Exec, Log } from '@kubernetes/client-node';
import type { TestNamespace } from './pods.ts';
import { until } from './until.ts';

/** A line of a container's log, and when the container runtime read it (ms since the epoch). */
export interface LogLine {
  readonly at: number;
  readonly text: string;
}

/**
 * The log of a container, read from its start while the container runs, because it is deleted with
 * the pod.
 */
export class PodLog {
  readonly #lines: LogLine[] = [];
  readonly #ended: Promise<unknown>;
  #rest = '';

  private constructor(stream: PassThrough) {
    this.#ended = once(stream, 'end');
    stream.on('data', (chunk: Buffer) => this.#read(chunk.toString('utf8')));
  }

  /** As soon as the container has a log. */
  static async follow(
    namespace: TestNamespace,
    pod: string,
    container = 'runner',
  ): Promise<PodLog> {
    let stream = new PassThrough();
    await until(`the log of ${pod}/${container}`, async () => {
      stream = new PassThrough();
      await new Log(namespace.kubeConfig).log(namespace.name, pod, container, stream, {
        follow: true,
        timestamps: true,
      });
      return true;
    });
    return new PodLog(stream);
  }

  #read(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) {
      const space = line.indexOf(' ');
      this.#lines.push({ at: Date.parse(line.slice(0, space)), text: line.slice(space + 1) });
    }
  }

  get text(): string {
    return this.#lines.map(({ text }) => text).join('\n');
  }

  /** Errors in the supervisor's log, including stops. */
  get errors(): LogLine[] {
    return this.#lines
      .filter(({ text }) => text.startsWith('{"component":"entrypoint","level":"error"'))
      .map(({ at, text }) => ({ at, text: (JSON.parse(text) as { msg: string }).msg }));
  }

  /** Awaits the first line with this text. */
  async says(text: string): Promise<LogLine> {
    const find = (): LogLine | undefined => this.#lines.find((line) => line.text.includes(text));
    await until(
      `the log to say "${text}"`,
      () => find() !== undefined,
      () => this.text,
      150_000,
    );
    return find() as LogLine;
  }

  /** Resolves when the container has ended and its whole log was read. */
  async complete(): Promise<this> {
    await this.#ended;
    return this;
  }
}

/** Runs a script in a container, as `kubectl exec` would. @returns its standard output */
export async function inContainer(
  { kubeConfig, name }: TestNamespace,
  pod: string,
  script: string,
  container = 'runner',
): Promise<string> {
  const chunks: string[] = [];
  const output = new PassThrough()
    .setEncoding('utf8')
    .on('data', (chunk: string) => chunks.push(chunk));
  const socket = await new Exec(kubeConfig).exec(
    name,
    pod,
    container,
    ['sh', '-c', script],
    output,
    new PassThrough(),
    null,
    false,
  );
  await once(socket, 'close');
  return chunks.join('');
}
