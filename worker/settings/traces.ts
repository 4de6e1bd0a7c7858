import type { ConfigProblem } from './configError.ts';

type Env = Readonly<Record<string, string | undefined>>;

/**
 * Variables of OpenTelemetry, the first of which takes precedence
 * (https://opentelemetry.io/docs/specs/otel/protocol/exporter/).
 */
const ENDPOINTS = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'] as const;
const PROTOCOLS = ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL'] as const;

/**
 * Returns whether spans are exported. They are not if the variables request an unsupported export,
 * because runners do not depend on it.
 * @param warnings - receives an entry in that case
 */
export function tracingEnabled(set: Env, warnings: ConfigProblem[]): boolean {
  const endpoint = firstSet(set, ENDPOINTS);
  if (
    endpoint === undefined ||
    set['OTEL_SDK_DISABLED']?.toLowerCase() === 'true' ||
    set['OTEL_TRACES_EXPORTER'] === 'none'
  )
    return false;
  const problem = problemOf(set, endpoint);
  if (problem !== undefined)
    warnings.push({
      setting: problem.setting,
      message: `${problem.message}; no traces are exported`,
    });
  return problem === undefined;
}

function problemOf(set: Env, [setting, url]: readonly [string, string]): ConfigProblem | undefined {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    return {
      setting,
      message: `"${url}" must be the address of a collector, such as http://otel-collector:4318`,
    };
  const exporter = set['OTEL_TRACES_EXPORTER'] ?? 'otlp';
  if (exporter !== 'otlp')
    return {
      setting: 'OTEL_TRACES_EXPORTER',
      message: `must be "otlp" or "none", got "${exporter}"`,
    };
  const [named, protocol] = firstSet(set, PROTOCOLS) ?? ['', 'http/protobuf'];
  if (protocol !== 'http/protobuf')
    return {
      setting: named,
      message: `must be "http/protobuf", got "${protocol}"; use the port of the collector for it (4318)`,
    };
  return undefined;
}

function firstSet(set: Env, names: readonly string[]): readonly [string, string] | undefined {
  for (const name of names) if (set[name]) return [name, set[name]];
  return undefined;
}
