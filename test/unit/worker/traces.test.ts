import { describe, expect, test } from '@jest/globals';
import { parseTraceparent, formatTraceparent } from '../../../core/domain/traceContext.ts';
import type { ConfigProblem } from '../../../worker/settings/configError.ts';
import { tracingEnabled } from '../../../worker/settings/traces.ts';

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };

describe('traces are exported', () => {
  const wanted = (env: Record<string, string>): [boolean, string[]] => {
    const warnings: ConfigProblem[] = [];
    const answer = tracingEnabled(env, warnings);
    return [answer, warnings.map(({ setting, message }) => `${setting}: ${message}`)];
  };

  test.each<[Record<string, string>, boolean]>([
    [{}, false],
    [ENDPOINT, true],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://collector/v1/traces' }, true],
    [
      { ...ENDPOINT, OTEL_TRACES_EXPORTER: 'otlp', OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf' },
      true,
    ],
    [
      {
        ...ENDPOINT,
        OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
        OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/protobuf',
      },
      true,
    ],
    [{ ...ENDPOINT, OTEL_SDK_DISABLED: 'TRUE' }, false],
    [{ ...ENDPOINT, OTEL_TRACES_EXPORTER: 'none' }, false],
  ])('%j: %s', (env, expected) => expect(wanted(env)).toEqual([expected, []]));

  test.each<[Record<string, string>, RegExp]>([
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' },
      /^OTEL_EXPORTER_OTLP_ENDPOINT: .*"collector:4318"/,
    ],
    [{ ...ENDPOINT, OTEL_TRACES_EXPORTER: 'zipkin' }, /^OTEL_TRACES_EXPORTER: .*"zipkin"/],
    [
      { ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
      /^OTEL_EXPORTER_OTLP_PROTOCOL: .*"grpc".*4318/,
    ],
  ])('not with %j, with a warning', (env, warning) =>
    expect(wanted(env)).toEqual([false, [expect.stringMatching(warning)]]),
  );
});

describe('traceparent', () => {
  const [traceId, spanId] = ['0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331'];

  test.each([true, false])('is formatted and parsed, recorded: %s', (sampled) => {
    expect(parseTraceparent(formatTraceparent({ traceId, spanId, sampled }))).toEqual({
      traceId,
      spanId,
      sampled,
    });
  });

  test.each([
    undefined,
    1,
    '',
    `00-${traceId}-${spanId}`,
    `ff-${traceId}-${spanId}-01`,
    `00-${'0'.repeat(32)}-${spanId}-01`,
    `00-${traceId}-${'0'.repeat(16)}-01`,
    `00-${traceId.toUpperCase()}-${spanId}-01`,
    ` 00-${traceId}-${spanId}-01`,
  ])('%j is invalid', (text) => {
    expect(parseTraceparent(text)).toBeUndefined();
  });
});
