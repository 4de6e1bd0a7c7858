import type { ConfigProblem } from './configError.ts';

type Env = Readonly<Record<string, string | undefined>>;

/**
 * Variables of OpenTelemetry. The first one that is set takes precedence
 * (https://opentelemetry.io/docs/specs/otel/protocol/exporter/).
 */
const ENDPOINTS = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'] as const;
const PROTOCOLS = ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL'] as const;

/**
 * Returns whether spans are exported. An unsupported export is a warning and not an error, because
 * runners do not depend on traces.
 * @param warnings - receives the warning
 */
export function tracingEnabled(env: Env, warnings: ConfigProblem[]): boolean {
  const endpoint = firstSet(env, ENDPOINTS);
  if (
    endpoint === undefined ||
    env['OTEL_SDK_DISABLED']?.toLowerCase() === 'true' ||
    env['OTEL_TRACES_EXPORTER'] === 'none'
  )
    return false;
  const problem = problemOf(env, endpoint);
  if (problem !== undefined)
    warnings.push({
      setting: problem.setting,
      message: `${problem.message}; no traces are exported`,
    });
  return problem === undefined;
}

function problemOf(env: Env, [setting, url]: readonly [string, string]): ConfigProblem | undefined {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    return {
      setting,
      message: `must be the address of a collector, such as http://otel-collector:4318, got "${url}"`,
    };
  const exporter = env['OTEL_TRACES_EXPORTER'] ?? 'otlp';
  if (exporter !== 'otlp')
    return {
      setting: 'OTEL_TRACES_EXPORTER',
      message: `must be "otlp" or "none", got "${exporter}"`,
    };
  const [variable, protocol] = firstSet(env, PROTOCOLS) ?? ['', 'http/protobuf'];
  if (protocol !== 'http/protobuf')
    return {
      setting: variable,
      message: `must be "http/protobuf", got "${protocol}"; use the port of the collector for it (4318)`,
    };
  return undefined;
}

function firstSet(env: Env, names: readonly string[]): readonly [string, string] | undefined {
  for (const name of names) if (env[name]) return [name, env[name]];
  return undefined;
}
