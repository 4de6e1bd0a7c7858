/** Configuration of `holdfast webhook`. It has some of the worker's settings, and no credential. */
import { readSetting, nonEmptySettings, type HoldfastConfig } from './config.ts';
import { ConfigError, type ConfigProblem } from './configError.ts';
import { settings } from './settings.ts';
import { loadTemporalConfig } from './temporalConfig.ts';
import { tracingEnabled } from './traces.ts';
import { unknownSettings, unreadSettings } from './unknownSettings.ts';
import { webhookSecrets, type WebhookEndpoint } from './webhookSecrets.ts';

/** Configuration of the webhook process. Durations in ms. */
export interface WebhookConfig extends Pick<
  HoldfastConfig,
  | 'temporal'
  | 'readTemporal'
  | 'codecKeyFile'
  | 'taskQueue'
  | 'http'
  | 'connectTimeoutMs'
  | 'log'
  | 'traces'
  | 'warnings'
> {
  readonly webhook: WebhookEndpoint;
}

/** Settings of the webhook process, as in docs/configuration.md. */
export const webhookSettings = settings.pick({
  HOLDFAST_TASK_QUEUE: true,
  HOLDFAST_CODEC_KEY_FILE: true,
  HOLDFAST_TEMPORAL_API_KEY_FILE: true,
  HOLDFAST_HTTP_ADDRESS: true,
  HOLDFAST_WEBHOOK_ADDRESS: true,
  HOLDFAST_WEBHOOK_SECRET: true,
  HOLDFAST_WEBHOOK_SECRET_FILE: true,
  HOLDFAST_CONNECT_TIMEOUT: true,
  HOLDFAST_LOG_LEVEL: true,
  HOLDFAST_LOG_FORMAT: true,
});

/**
 * Reads the configuration.
 * @throws ConfigError with every problem found
 */
export function loadWebhookConfig(
  env: Readonly<Record<string, string | undefined>>,
): WebhookConfig {
  const set = nonEmptySettings(env);
  const problems: ConfigProblem[] = [];
  const parsed = webhookSettings.safeParse(set);
  for (const issue of parsed.error?.issues ?? [])
    problems.push({ setting: issue.path.join('.'), message: issue.message });
  if (
    set['HOLDFAST_WEBHOOK_SECRET'] !== undefined &&
    set['HOLDFAST_WEBHOOK_SECRET_FILE'] !== undefined
  )
    problems.push({
      setting: 'HOLDFAST_WEBHOOK_SECRET',
      message: 'HOLDFAST_WEBHOOK_SECRET_FILE is set too: keep one of the two',
    });
  const temporal = readSetting('TEMPORAL_*', problems, () => loadTemporalConfig(set));
  const secrets = readSetting('HOLDFAST_WEBHOOK_SECRET_FILE', problems, () => {
    const found = webhookSecrets(set);
    if (found === undefined)
      throw new Error("is not set: set it to the path of a file with the webhook's secret");
    return found;
  });
  problems.push(...unknownSettings(set));
  const warnings = unreadSettings(set, Object.keys(webhookSettings.shape));
  const traces = tracingEnabled(set, warnings);
  if (problems.length > 0 || !parsed.success || temporal === undefined || secrets === undefined)
    throw new ConfigError([...problems, ...warnings]);
  const s = parsed.data;
  return {
    temporal,
    readTemporal: () => loadTemporalConfig(set),
    codecKeyFile: s.HOLDFAST_CODEC_KEY_FILE,
    taskQueue: s.HOLDFAST_TASK_QUEUE,
    http: s.HOLDFAST_HTTP_ADDRESS,
    webhook: { ...s.HOLDFAST_WEBHOOK_ADDRESS, secrets },
    connectTimeoutMs: s.HOLDFAST_CONNECT_TIMEOUT,
    log: { level: s.HOLDFAST_LOG_LEVEL, format: s.HOLDFAST_LOG_FORMAT },
    traces,
    warnings,
  };
}
