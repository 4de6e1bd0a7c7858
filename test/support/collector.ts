import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../tools/lab/ports.ts';
import { resolveBinary } from '../../tools/lab/resolve.ts';
import { until } from './until.ts';

/** A span as the collector has written it. */
export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** ID of the parent, or `''`. */
  readonly parentSpanId: string;
  readonly name: string;
  /** Service name of the process. */
  readonly service: string;
  readonly attributes: Readonly<Record<string, string>>;
  /** Status code; 2 is an error. */
  readonly status: number;
}

interface Attribute {
  readonly key: string;
  readonly value: { readonly stringValue?: string; readonly intValue?: string };
}

/** OTLP as JSON, https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding */
interface Line {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly {
      readonly spans: readonly {
        traceId: string;
        spanId: string;
        parentSpanId?: string;
        name: string;
        attributes?: readonly Attribute[];
        status?: { code?: number };
      }[];
    }[];
  }[];
}

/** OpenTelemetry's own collector, which records what it receives. */
export class Collector {
  readonly #folder = mkdtempSync(join(tmpdir(), 'holdfast-collector-'));
  readonly #file = join(this.#folder, 'spans.json');
  readonly #port: number;
  readonly #process: ReturnType<typeof spawn>;
  #log = '';

  private constructor(binary: string, port: number) {
    this.#port = port;
    const config = {
      receivers: { otlp: { protocols: { http: { endpoint: `127.0.0.1:${port}` } } } },
      exporters: { file: { path: this.#file, flush_interval: '100ms' } },
      service: { pipelines: { traces: { receivers: ['otlp'], exporters: ['file'] } } },
    };
    this.#process = spawn(binary, ['--config', `yaml:${JSON.stringify(config)}`], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.#process.stderr?.on('data', (chunk: Buffer) => (this.#log += chunk.toString('utf8')));
  }

  /** @throws ComponentUnavailableError */
  static async start(): Promise<Collector> {
    const binary = await resolveBinary('otelcol', {
      progress: (line) => process.stderr.write(`[lab] ${line}\n`),
    });
    const collector = new Collector(binary, await freePort());
    await until(
      'the collector to answer',
      async () => (await fetch(`${collector.endpoint}/v1/traces`)).status === 405,
      () => collector.#log,
    );
    return collector;
  }

  /** Value of `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  get endpoint(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** All spans that it has received so far. */
  spans(): CollectedSpan[] {
    // The last line may be half written.
    const lines = readFileSync(this.#file, 'utf8').split('\n').slice(0, -1);
    return lines.flatMap((line) =>
      (JSON.parse(line) as Line).resourceSpans.flatMap(({ resource, scopeSpans }) =>
        scopeSpans.flatMap(({ spans }) =>
          spans.map(({ traceId, spanId, parentSpanId = '', name, attributes = [], status }) => ({
            traceId,
            spanId,
            parentSpanId,
            name,
            service: textsOf(resource.attributes)['service.name'] ?? '',
            attributes: textsOf(attributes),
            status: status?.code ?? 0,
          })),
        ),
      ),
    );
  }

  async stop(): Promise<void> {
    const ended = once(this.#process, 'close');
    this.#process.kill('SIGTERM');
    await ended;
    rmSync(this.#folder, { recursive: true });
  }
}

function textsOf(attributes: readonly Attribute[]): Record<string, string> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue ?? '']),
  );
}
