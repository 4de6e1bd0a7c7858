import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { ConfigError } from '../../../worker/settings/configError.ts';
import { DEFAULT_POD_POLICY } from '../../../activities/compute/kubernetes/podPolicy/podPolicy.ts';
import { loadConfig } from '../../../worker/settings/config.ts';

const GOOD = { HOLDFAST_GITHUB_TOKEN: 'ghp_secret' };

function problemsOf(env: Record<string, string>): string[] {
  try {
    loadConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split('\n');
    throw error;
  }
  return [];
}

const folder = mkdtempSync(join(tmpdir(), 'holdfast-config-'));
afterAll(() => rmSync(folder, { recursive: true }));

function file(content: string): string {
  const path = join(mkdtempSync(join(folder, 'one-')), 'file');
  writeFileSync(path, content);
  return path;
}

describe('configuration', () => {
  test('requires no setting, and has these defaults', () => {
    const {
      credentials,
      temporal,
      readTemporal: _readTemporal,
      ...config
    } = loadConfig({ ...GOOD, HOME: '/nowhere', XDG_STATE_HOME: '/state' });
    expect(config).toEqual({
      codecKeyFile: undefined,
      taskQueue: 'holdfast',
      installation: 'holdfast',
      compute: {
        kind: 'kubernetes',
        namespace: undefined,
        otherNamespaces: [],
        jobPodNamespaces: [],
        kubeconfig: undefined,
        context: undefined,
        image: 'ghcr.io/actions/actions-runner:2.338.0',
        command: ['/bin/sh', '-c', expect.stringMatching(/exec \.\/run\.sh$/)],
        user: 1001,
        supervisorImage: undefined,
        policy: DEFAULT_POD_POLICY,
      },
      timeouts: {},
      podLogs: undefined,
      http: { host: '0.0.0.0', port: 8080 },
      webhook: undefined,
      redeliveryIntervalMs: 0,
      sweepIntervalMs: 300_000,
      shutdownGraceMs: 30_000,
      shutdownForceMs: 50_000,
      connectTimeoutMs: 60_000,
      maxCachedWorkflows: 2_000,
      maxWorkflowTasks: 100,
      maxActivities: 200,
      workflowStacks: false,
      log: { level: 'info', format: 'json' },
      traces: false,
      versioning: undefined,
      warnings: [],
    });
    expect(temporal).toMatchObject({ address: 'localhost:7233', namespace: 'default' });
    expect(credentials).toMatchObject({
      default: { type: 'pat', tokenEnv: 'HOLDFAST_GITHUB_TOKEN', apiUrl: 'https://api.github.com' },
    });
  });

  test('without a credential: a worker for plain commands, and a warning', () => {
    const { credentials, warnings } = loadConfig({});
    expect(credentials).toEqual({});
    expect(warnings).toMatchObject([{ setting: 'HOLDFAST_GITHUB_TOKEN_FILE' }]);
  });

  test('reports every error at once, each with its setting and the fix', () => {
    const problems = problemsOf({
      HOLDFAST_COMPUTE: 'docker',
      HOLDFAST_HTTP_ADDRESS: 'eighty',
      HOLDFAST_SHUTDOWN_GRACE_TIME: '30',
      HOLDFAST_MAX_CONCURRENT_ACTIVITIES: '0',
      HOLDFAST_INSTALLATION: 'My Runners',
      HOLDFAST_LOG_LEVEL: 'loud',
      HOLDFAST_WEBHOOK_SECRET_FILE: '/nowhere/secret',
      TEMPORAL_WORKER_BUILD_ID: 'b1',
    });
    expect(problems).toEqual([
      'HOLDFAST_COMPUTE: "docker" is not one of kubernetes, process',
      'HOLDFAST_INSTALLATION: "My Runners" is not a name: use 1 to 63 lower-case letters, digits and dashes, no dash at either end',
      'HOLDFAST_HTTP_ADDRESS: "eighty" is not an address to listen on: write for example 0.0.0.0:8080 or [::]:8080',
      'HOLDFAST_SHUTDOWN_GRACE_TIME: "30" is not a duration: write for example 30s, 10m or 1h30m',
      'HOLDFAST_MAX_CONCURRENT_ACTIVITIES: "0" is not a whole number from 1 to 10000',
      'HOLDFAST_LOG_LEVEL: "loud" is not one of trace, debug, info, warn, error',
      'TEMPORAL_DEPLOYMENT_NAME: is missing while TEMPORAL_WORKER_BUILD_ID is set: set both, or neither',
      'HOLDFAST_WEBHOOK_SECRET_FILE: cannot read /nowhere/secret (ENOENT): check the path and its permissions',
      expect.stringMatching(/^HOLDFAST_GITHUB_TOKEN_FILE: no credential .* plain commands only/),
    ]);
  });

  test.each([
    [
      'two sources of a token',
      { HOLDFAST_GITHUB_TOKEN_FILE: '/t' },
      'HOLDFAST_GITHUB_TOKEN: HOLDFAST_GITHUB_TOKEN_FILE is set too: keep one of the two',
    ],
    [
      'two sources of a webhook secret',
      { HOLDFAST_WEBHOOK_SECRET: 'x', HOLDFAST_WEBHOOK_SECRET_FILE: file('y') },
      'HOLDFAST_WEBHOOK_SECRET: HOLDFAST_WEBHOOK_SECRET_FILE is set too: keep one of the two',
    ],
    [
      'an empty webhook secret file',
      { HOLDFAST_WEBHOOK_SECRET_FILE: file('\n \n') },
      /^HOLDFAST_WEBHOOK_SECRET_FILE: .* is empty: put the webhook's secret into it$/,
    ],
    [
      'a force time that is shorter than the grace time',
      { HOLDFAST_SHUTDOWN_GRACE_TIME: '1m' },
      'HOLDFAST_SHUTDOWN_FORCE_TIME: is shorter than HOLDFAST_SHUTDOWN_GRACE_TIME: make it at least as long',
    ],
    [
      'an invalid server address',
      { HOLDFAST_GITHUB_URL: 'github' },
      /^HOLDFAST_GITHUB_URL: "github" is not a web address: write for example https:/,
    ],
    [
      'the web address of GitHub',
      { HOLDFAST_GITHUB_URL: 'https://github.com' },
      /^HOLDFAST_GITHUB_TOKEN: credentials\.default\.apiUrl: is the web address/,
    ],
    [
      'credentials that are not valid JSON',
      { HOLDFAST_CREDENTIALS: '{ghp_secret' },
      /^HOLDFAST_CREDENTIALS: is not JSON: write for example/,
    ],
    [
      'a list of credentials',
      { HOLDFAST_CREDENTIALS: '[]' },
      'HOLDFAST_CREDENTIALS: is not an object from credential names to credentials',
    ],
    [
      'a secret among the credentials',
      { HOLDFAST_CREDENTIALS: '{"a":{"type":"pat","token":"ghp_secret"}}' },
      /^HOLDFAST_CREDENTIALS: credentials\.a\.token: secrets do not belong in the configuration/,
    ],
    [
      'a second default credential',
      { HOLDFAST_CREDENTIALS: '{"default":{"type":"pat","tokenFile":"/t"}}' },
      /^HOLDFAST_GITHUB_TOKEN: makes the credential "default", and HOLDFAST_CREDENTIALS or its file has one/,
    ],
    [
      'a missing credentials file',
      { HOLDFAST_CREDENTIALS_FILE: '/nowhere' },
      'HOLDFAST_CREDENTIALS_FILE: cannot read /nowhere (ENOENT): check the path and its permissions',
    ],
    [
      'a credentials file that is not valid YAML',
      { HOLDFAST_CREDENTIALS_FILE: file('a: [') },
      /^HOLDFAST_CREDENTIALS_FILE: .* is neither YAML nor JSON: check its syntax$/,
    ],
    [
      'a missing Temporal profile',
      {
        TEMPORAL_CONFIG_FILE: file('[profile.default]\naddress = "t:1"\n'),
        TEMPORAL_PROFILE: 'prod',
      },
      /^TEMPORAL_\*: .*prod/,
    ],
    [
      'a port that is too high',
      { HOLDFAST_HTTP_ADDRESS: '0.0.0.0:65536' },
      /^HOLDFAST_HTTP_ADDRESS: /,
    ],
    [
      'a sweep interval that is too short',
      { HOLDFAST_SWEEP_INTERVAL: '500ms' },
      'HOLDFAST_SWEEP_INTERVAL: "500ms" is neither a duration of at least 1s nor off: write for example 5m',
    ],
    [
      'a sweep interval that is a time of day',
      { HOLDFAST_SWEEP_INTERVAL: 'noon' },
      /^HOLDFAST_SWEEP_INTERVAL: "noon" is neither/,
    ],
    [
      'a command that is an object',
      { HOLDFAST_RUNNER_COMMAND: '[1]' },
      /^HOLDFAST_RUNNER_COMMAND: "\[1\]" is not a command/,
    ],
  ])('rejects %s', (_what, env: Record<string, string>, expected: string | RegExp) => {
    const problems = problemsOf({ ...GOOD, ...env });
    const matching: unknown = expect.stringMatching(expected);
    expect(problems).toContainEqual(typeof expected === 'string' ? expected : matching);
    expect(problems.join('\n')).not.toContain('ghp_secret');
  });

  test.each([
    ['/opt/run.sh --once', ['/opt/run.sh', '--once']],
    ['["/opt/my runner/run.sh","--once"]', ['/opt/my runner/run.sh', '--once']],
  ])('a command may be %s', (value, expected) => {
    expect(
      loadConfig({
        ...GOOD,
        HOLDFAST_COMPUTE: 'process',
        HOLDFAST_RUNNER_COMMAND: value,
        HOLDFAST_STATE_DIR: '/s',
      }).compute,
    ).toEqual({
      kind: 'process',
      stateDir: '/s',
      command: expected,
      anyCommand: false,
    });
  });

  test.each([
    ['9090', { host: '0.0.0.0', port: 9090 }],
    ['[::]:8080', { host: '::', port: 8080 }],
    ['127.0.0.1:0', { host: '127.0.0.1', port: 0 }],
  ])('an address may be %s', (value, expected) => {
    expect(loadConfig({ ...GOOD, HOLDFAST_HTTP_ADDRESS: value }).http).toEqual(expected);
  });

  test.each([
    ['off', 0],
    ['0', 0],
    ['0s', 0],
    ['1s', 1_000],
    ['1h30m', 5_400_000],
  ])('the sweep interval may be %s', (value, expected) => {
    expect(loadConfig({ ...GOOD, HOLDFAST_SWEEP_INTERVAL: value }).sweepIntervalMs).toBe(expected);
  });

  test('a custom image has its own command', () => {
    expect(loadConfig({ ...GOOD, HOLDFAST_RUNNER_IMAGE: 'runner:mine' }).compute).toMatchObject({
      image: 'runner:mine',
      command: undefined,
    });
  });

  test('an empty value counts as not set', () => {
    expect(
      loadConfig({ ...GOOD, HOLDFAST_TASK_QUEUE: '', HOLDFAST_WEBHOOK_SECRET: ' ' }),
    ).toMatchObject({ taskQueue: 'holdfast', webhook: undefined });
  });

  test('a credential of other task queues is not used by this worker', () => {
    const HOLDFAST_CREDENTIALS = JSON.stringify({
      mine: { type: 'pat', tokenEnv: 'T', taskQueues: ['q', 'r'] },
      theirs: { type: 'pat', tokenEnv: 'T', taskQueues: ['s'] },
    });
    expect(
      Object.keys(loadConfig({ HOLDFAST_CREDENTIALS, HOLDFAST_TASK_QUEUE: 'q' }).credentials),
    ).toEqual(['mine']);
    expect(problemsOf({ HOLDFAST_CREDENTIALS })).toEqual([
      'HOLDFAST_CREDENTIALS: none of the credentials (mine, theirs) is for the task queue "holdfast": add it to the taskQueues of one, or set HOLDFAST_TASK_QUEUE',
    ]);
  });

  test('credentials come from a YAML file, in addition to the shorthand', () => {
    const path = file(
      'acme:\n  type: app\n  appId: 12\n  installationId: 34\n  privateKeyFile: /etc/key.pem\n',
    );
    const { credentials } = loadConfig({
      HOLDFAST_GITHUB_TOKEN_FILE: '/etc/token',
      HOLDFAST_GITHUB_URL: 'https://ghes.test/api/v3/',
      HOLDFAST_GITHUB_RERUNS: 'true',
      HOLDFAST_CREDENTIALS_FILE: path,
    });
    expect(credentials).toMatchObject({
      default: {
        type: 'pat',
        tokenFile: '/etc/token',
        apiUrl: 'https://ghes.test/api/v3',
        reruns: true,
      },
      acme: { type: 'app', appId: 12, installationId: 34, reruns: false },
    });
  });

  test('webhook secrets are read again for each request, so that they may be rotated', () => {
    const path = file('new\nold\n');
    const { webhook } = loadConfig({ ...GOOD, HOLDFAST_WEBHOOK_SECRET_FILE: path });
    expect(webhook).toMatchObject({ host: '0.0.0.0', port: 8081 });
    expect(webhook?.secrets()).toEqual(['new', 'old']);
    writeFileSync(path, 'newer');
    expect(webhook?.secrets()).toEqual(['newer']);
  });

  test.each<[string, Record<string, string>, number]>([
    ['no webhook: no redelivery', {}, 0],
    ['a webhook here', { HOLDFAST_WEBHOOK_SECRET: 's' }, 300_000],
    [
      'a webhook in another process, redelivered by this one',
      { HOLDFAST_REDELIVERY_INTERVAL: '10m' },
      600_000,
    ],
    [
      'a webhook here, redelivered by another process',
      { HOLDFAST_WEBHOOK_SECRET: 's', HOLDFAST_REDELIVERY_INTERVAL: '0s' },
      0,
    ],
  ])('redelivery with %s', (_what, env, expected) => {
    expect(loadConfig({ ...GOOD, ...env }).redeliveryIntervalMs).toBe(expected);
  });

  test.each<[string, Record<string, string>, object]>([
    ['a claim', { HOLDFAST_STORE_VOLUME_CLAIM: 'artifacts' }, { claim: 'artifacts' }],
    [
      'a bucket of Amazon S3',
      { HOLDFAST_STORE_BUCKET: 'artifacts', HOLDFAST_STORE_REGION: 'eu-west-1' },
      { bucket: 'artifacts', region: 'eu-west-1', pathStyle: false },
    ],
    [
      'a bucket of another provider',
      {
        HOLDFAST_STORE_BUCKET: 'artifacts',
        HOLDFAST_STORE_PREFIX: 'ci',
        HOLDFAST_STORE_ENDPOINT: 'https://s3.example.com/',
        HOLDFAST_STORE_SECRET: 'bucket.key',
      },
      {
        bucket: 'artifacts',
        folder: 'ci',
        region: 'us-east-1',
        endpoint: 'https://s3.example.com',
        pathStyle: true,
        secret: 'bucket.key',
      },
    ],
    [
      'a bucket in the host name',
      {
        HOLDFAST_STORE_BUCKET: 'artifacts',
        HOLDFAST_STORE_ENDPOINT: 'https://oss.example.com',
        HOLDFAST_STORE_FORCE_PATH_STYLE: 'false',
      },
      {
        bucket: 'artifacts',
        region: 'us-east-1',
        endpoint: 'https://oss.example.com',
        pathStyle: false,
      },
    ],
  ])('the store may be %s', (_what, env, expected) => {
    expect(
      loadConfig({ ...GOOD, HOLDFAST_SUPERVISOR_IMAGE: 'sup:1', ...env }).compute,
    ).toMatchObject({ store: expected });
  });

  test.each<[string, Record<string, string>, string]>([
    [
      'claim and bucket',
      { HOLDFAST_STORE_VOLUME_CLAIM: 'artifacts', HOLDFAST_STORE_BUCKET: 'artifacts' },
      'HOLDFAST_STORE_VOLUME_CLAIM: HOLDFAST_STORE_BUCKET is set too: keep one of the two',
    ],
    [
      'no bucket',
      { HOLDFAST_STORE_SECRET: 'key' },
      'HOLDFAST_STORE_SECRET: is about a bucket, and none is named: set HOLDFAST_STORE_BUCKET, or remove it',
    ],
    [
      'an address instead of a name',
      { HOLDFAST_STORE_BUCKET: 's3://artifacts' },
      'HOLDFAST_STORE_BUCKET: "s3://artifacts" is not a bucket\'s name: use 3 to 255 letters, digits, dots, dashes and underscores, and no s3:// before it',
    ],
  ])('an invalid store: %s', (_what, env, expected) => {
    expect(problemsOf({ ...GOOD, HOLDFAST_SUPERVISOR_IMAGE: 'sup:1', ...env })).toEqual([expected]);
  });

  test.each(['HOLDFAST_STORE_VOLUME_CLAIM', 'HOLDFAST_STORE_BUCKET'])(
    '%s needs the image with the uploader',
    (name) => {
      expect(problemsOf({ ...GOOD, [name]: 'artifacts' })).toEqual([
        `${name}: needs the image that has the uploader: set HOLDFAST_SUPERVISOR_IMAGE`,
      ]);
    },
  );

  test.each<[string, Record<string, string>, object | undefined]>([
    ['no claim', {}, undefined],
    ['the default class', { HOLDFAST_JOB_CLAIM_SIZE: '500Mi' }, { size: '500Mi' }],
    [
      'a class',
      { HOLDFAST_JOB_CLAIM_SIZE: '1Gi', HOLDFAST_JOB_CLAIM_STORAGE_CLASS: 'fast.example.com' },
      { size: '1Gi', storageClass: 'fast.example.com' },
    ],
  ])('claims of jobs: %s', (_what, env, jobClaim) => {
    expect(loadConfig({ ...GOOD, ...env }).compute).toMatchObject({ jobClaim });
  });

  test.each<[string, Record<string, string>, string]>([
    ['no size', { HOLDFAST_JOB_CLAIM_SIZE: '1 GB' }, 'HOLDFAST_JOB_CLAIM_SIZE'],
    ['no room', { HOLDFAST_JOB_CLAIM_SIZE: '0' }, 'HOLDFAST_JOB_CLAIM_SIZE'],
    [
      'only a class',
      { HOLDFAST_JOB_CLAIM_STORAGE_CLASS: 'fast' },
      'HOLDFAST_JOB_CLAIM_STORAGE_CLASS',
    ],
    [
      'no class',
      { HOLDFAST_JOB_CLAIM_SIZE: '1Gi', HOLDFAST_JOB_CLAIM_STORAGE_CLASS: 'Fast!' },
      'HOLDFAST_JOB_CLAIM_STORAGE_CLASS',
    ],
    [
      'with a store',
      { HOLDFAST_JOB_CLAIM_SIZE: '1Gi', HOLDFAST_STORE_VOLUME_CLAIM: 'artifacts' },
      'HOLDFAST_JOB_CLAIM_SIZE',
    ],
    [
      'with a bucket',
      { HOLDFAST_JOB_CLAIM_SIZE: '1Gi', HOLDFAST_STORE_BUCKET: 'artifacts' },
      'HOLDFAST_JOB_CLAIM_SIZE',
    ],
  ])('invalid claims of jobs: %s', (_what, env, setting) => {
    const problems = problemsOf({ ...GOOD, HOLDFAST_SUPERVISOR_IMAGE: 'sup:1', ...env });
    expect(problems).toEqual([expect.stringMatching(`^${setting}: `)]);
  });

  test('worker versioning is on if the controller sets both variables', () => {
    expect(
      loadConfig({ ...GOOD, TEMPORAL_DEPLOYMENT_NAME: 'd', TEMPORAL_WORKER_BUILD_ID: 'b' })
        .versioning,
    ).toEqual({ deploymentName: 'd', buildId: 'b' });
  });

  test('a misspelled setting is an error, because the worker would start without its protection', () => {
    expect(problemsOf({ ...GOOD, HOLDFAST_CODEC_KEYFILE: '/keys' })).toEqual([
      expect.stringMatching(/^HOLDFAST_CODEC_KEYFILE: /),
    ]);
  });

  test('variables that credentials name, and those of Kubernetes, are accepted', () => {
    const { warnings } = loadConfig({
      ...GOOD,
      HOLDFAST_GITHUB_TOKEN: '',
      HOLDFAST_CREDENTIALS: JSON.stringify({
        default: { type: 'pat', tokenEnv: 'HOLDFAST_MY_TOKEN' },
      }),
      HOLDFAST_MY_TOKEN: 'x',
      HOLDFAST_SERVICE_HOST: '10.0.0.1',
      HOLDFAST_SERVICE_PORT: '8080',
      HOLDFAST_SERVICE_PORT_HTTP: '8080',
      HOLDFAST_PORT: 'tcp://10.0.0.1:8080',
      HOLDFAST_PORT_8080_TCP_ADDR: '10.0.0.1',
      HOLDFAST_HTTP_PORT_80_TCP: 'tcp://10.0.0.1:80',
    });
    expect(warnings).toEqual([]);
  });

  test('no message contains a secret', () => {
    const problems = problemsOf({
      HOLDFAST_GITHUB_TOKEN: 'ghp_secret',
      HOLDFAST_WEBHOOK_SECRET: 'whsec',
      HOLDFAST_COMPUTE: 'x',
    });
    expect(problems).toHaveLength(1);
    expect(problems.join('\n')).not.toMatch(/ghp_secret|whsec/);
  });
});
