import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { ConfigError } from '../../../worker/settings/configError.ts';
import { loadWebhookConfig } from '../../../worker/settings/webhookConfig.ts';

describe("the webhook's own configuration", () => {
  test('requires only the secret', () => {
    const { temporal, readTemporal, webhook, ...config } = loadWebhookConfig({
      HOLDFAST_WEBHOOK_SECRET: 's',
    });
    expect(config).toEqual({
      codecKeyFile: undefined,
      taskQueue: 'holdfast',
      http: { host: '0.0.0.0', port: 8080 },
      connectTimeoutMs: 60_000,
      log: { level: 'info', format: 'json' },
      traces: false,
      warnings: [],
    });
    expect({ ...webhook, secrets: webhook.secrets() }).toEqual({
      host: '0.0.0.0',
      port: 8081,
      secrets: ['s'],
    });
    expect(temporal.address).toBe('localhost:7233');
    expect(readTemporal()).toEqual(temporal);
  });

  test("has the worker's settings for Temporal: the keys of its codec, and an API key file", () => {
    const apiKey = join(mkdtempSync(join(tmpdir(), 'holdfast-webhook-')), 'api-key');
    writeFileSync(apiKey, 'key-1');
    const config = loadWebhookConfig({
      HOLDFAST_WEBHOOK_SECRET: 's',
      HOLDFAST_CODEC_KEY_FILE: '/keys',
      HOLDFAST_TEMPORAL_API_KEY_FILE: apiKey,
    });
    writeFileSync(apiKey, 'key-2');
    expect(
      [config.temporal, config.readTemporal()].map(
        ({ connectionOptions }) => connectionOptions.apiKey,
      ),
    ).toEqual(['key-1', 'key-2']);
    expect([config.codecKeyFile, config.warnings]).toEqual(['/keys', []]);
  });

  test('rejects a credential, and other settings of the worker', () => {
    const { warnings } = loadWebhookConfig({
      HOLDFAST_WEBHOOK_SECRET: 's',
      HOLDFAST_GITHUB_TOKEN: 'ghp_x',
      HOLDFAST_KUBECONFIG: '/k',
      HOLDFAST_SERVICE_HOST: '10.0.0.1',
    });
    expect(warnings.map(({ setting }) => setting).toSorted()).toEqual([
      'HOLDFAST_GITHUB_TOKEN',
      'HOLDFAST_KUBECONFIG',
    ]);
  });

  test('a misspelled setting is an error', () => {
    const misspelt = { HOLDFAST_WEBHOOK_SECRET: 's', HOLDFAST_CODEC_KEYFILE: '/keys' };
    expect(() => loadWebhookConfig(misspelt)).toThrow(ConfigError);
    expect(() => loadWebhookConfig(misspelt)).toThrow(/HOLDFAST_CODEC_KEYFILE/);
  });

  test.each<[Record<string, string>, string[]]>([
    [
      {},
      [
        "HOLDFAST_WEBHOOK_SECRET_FILE: is not set: set it to the path of a file with the webhook's secret",
      ],
    ],
    [
      { HOLDFAST_WEBHOOK_SECRET_FILE: '/nowhere' },
      [
        'HOLDFAST_WEBHOOK_SECRET_FILE: cannot read /nowhere (ENOENT): check the path and its permissions',
      ],
    ],
    [
      { HOLDFAST_WEBHOOK_SECRET: 'a', HOLDFAST_WEBHOOK_SECRET_FILE: '/dev/null/x' },
      ['HOLDFAST_WEBHOOK_SECRET: HOLDFAST_WEBHOOK_SECRET_FILE is set too: keep one of the two'],
    ],
    [
      {
        HOLDFAST_WEBHOOK_SECRET: 'a',
        HOLDFAST_WEBHOOK_ADDRESS: 'eighty',
        HOLDFAST_LOG_LEVEL: 'loud',
      },
      [
        'HOLDFAST_WEBHOOK_ADDRESS: "eighty" is not an address to listen on: write for example 0.0.0.0:8080 or [::]:8080',
        'HOLDFAST_LOG_LEVEL: "loud" is not one of trace, debug, info, warn, error',
      ],
    ],
  ])('%j', (env, problems) => {
    const load = (): unknown => loadWebhookConfig(env);
    expect(load).toThrow(ConfigError);
    expect(load).toThrow(problems.join('\n'));
  });
});
