import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ConnectionLike } from '@temporalio/client';
import { afterAll, describe, expect, test } from '@jest/globals';
import { parseCredentials } from '../../../activities/ciServers/index.ts';
import { ciQueuesOf } from '../../../worker/settings/ciQueues.ts';
import { checkCredentials } from '../../../worker/checks/credentialCheck.ts';
import { createMetrics } from '../../../worker/process/metrics.ts';
import {
  checkLocation,
  evaluateLocation,
  isWrittenByWorker,
} from '../../../worker/checks/locationCheck.ts';
import {
  evaluateFairness,
  evaluateSearchAttributes,
} from '../../../worker/checks/temporalCheck.ts';
import { evaluateVersions } from '../../../worker/checks/versionCheck.ts';
import { quoteLiteral } from '../../../core/domain/visibility.ts';

const KEYWORD = 2;
const ALL = {
  RunnerPhase: KEYWORD,
  RunnerSet: KEYWORD,
  RunnerScope: KEYWORD,
  RunnerOutcome: KEYWORD,
  RunnerCause: KEYWORD,
  RunnerName: KEYWORD,
  RunnerLocation: KEYWORD,
};

describe('search attributes', () => {
  test('all exist', () => {
    expect(evaluateSearchAttributes({ ...ALL, Other: 1 }, '')).toEqual([
      { level: 'ok', message: expect.stringContaining('RunnerPhase') },
    ]);
  });

  test('one is missing', () => {
    const { RunnerSet: _missing, ...rest } = ALL;
    expect(evaluateSearchAttributes(rest, ' --namespace n')).toEqual([
      {
        level: 'error',
        message: 'Temporal search attribute missing: RunnerSet',
        fix: 'temporal operator search-attribute create --name RunnerSet --type Keyword --namespace n',
      },
    ]);
  });

  test('one has the wrong type', () => {
    expect(evaluateSearchAttributes({ ...ALL, RunnerPhase: 1 }, '')).toEqual([
      {
        level: 'error',
        message: 'Temporal search attribute RunnerPhase has the type Text, not Keyword',
        fix: expect.stringMatching(
          /TEMPORAL_NAMESPACE.* search-attribute remove --name RunnerPhase$/,
        ),
      },
    ]);
  });
});

test.each([
  ['1.28.3', 'warning'],
  ['0.30.0', 'warning'],
  ['1.29.0', 'ok'],
  ['1.31.2', 'ok'],
  ['2.0.0-rc.1', 'ok'],
  ['', 'ok'],
])('fairness of a Temporal server %s: %s', (version, level) => {
  expect(evaluateFairness(version)).toMatchObject({
    level,
    message: expect.stringContaining(version === '' ? 'unknown' : version),
  });
});

describe('versions of workers', () => {
  const [one, two] = ['one', 'two'].map((buildId) => ({
    deploymentName: 'ns/holdfast-worker',
    buildId,
  })) as [Version, Version];
  type Version = { deploymentName: string; buildId: string };
  const SET_CURRENT =
    'temporal worker deployment set-current-version --deployment-name ns/holdfast-worker --build-id';

  test.each<[what: string, polling: (Version | undefined)[], current: Version | undefined]>([
    ['nobody', [], undefined],
    ['workers without a version', [undefined], undefined],
    [
      'workers without a version, which get all tasks, and a version that is not yet current',
      [undefined, two],
      undefined,
    ],
  ])('no warning about %s', (_what, polling, current) => {
    expect(evaluateVersions('q', polling, current, '')).toEqual([]);
  });

  test('the current version polls, with or without others', () => {
    expect(evaluateVersions('q', [one, undefined, two], two, '')).toEqual([
      {
        level: 'ok',
        message: 'task queue "q": new workflows start on version two of ns/holdfast-worker',
      },
    ]);
  });

  test('no version is current', () => {
    expect(evaluateVersions('q', [one, one, two], undefined, ' --namespace n')).toEqual([
      {
        level: 'error',
        message:
          'task queue "q": no version of its workers is current, so they are given nothing new (polling: one of ns/holdfast-worker, two of ns/holdfast-worker)',
        fix: `${SET_CURRENT} one --namespace n`,
      },
    ]);
  });

  test.each<[what: string, polling: (Version | undefined)[], seen: string, fix: string]>([
    [
      'none',
      [],
      'none',
      'start workers of that version (kubectl get deployments -A -l temporal.io/build-id=two)',
    ],
    [
      'workers without a version',
      [undefined],
      'without a version',
      'start workers of that version (kubectl get deployments -A -l temporal.io/build-id=two)',
    ],
    [
      'another',
      [one],
      'one of ns/holdfast-worker',
      `start workers of that version (kubectl get deployments -A -l temporal.io/build-id=two), or have it begin on another: ${SET_CURRENT} one`,
    ],
  ])('the current version does not poll, but: %s', (_what, polling, seen, fix) => {
    expect(evaluateVersions('q', polling, two, '')).toEqual([
      {
        level: 'error',
        message: `task queue "q": new workflows start on version two of ns/holdfast-worker, of which no worker polls (polling: ${seen})`,
        fix,
      },
    ]);
  });
});

test('a task queue has runners of a location: a worker of another location gets an error with both locations and the fix', () => {
  const served = {
    compute: 'kubernetes',
    cluster: 'c1',
    installation: 'mine',
    namespace: 'ci',
  } as const;
  expect(evaluateLocation('q', served, undefined)).toEqual({
    level: 'ok',
    message: 'task queue "q" for runners in kubernetes/c1/mine/ci',
  });
  const elsewhere = { workflowId: 'runner-1', place: 'process/m1/mine', proven: true };
  expect(evaluateLocation('q', served, { ...elsewhere, proven: false })).toMatchObject({
    level: 'warning',
  });
  expect(evaluateLocation('q', served, elsewhere)).toEqual({
    level: 'error',
    message: expect.stringMatching(
      /^HOLDFAST_TASK_QUEUE: .*"q" is used for runners in process\/m1\/mine \(runner-1\), .* in kubernetes\/c1\/mine\/ci /,
    ),
    fix: expect.stringMatching(
      /HOLDFAST_TASK_QUEUE.*holdfast runner drain --query "RunnerLocation = 'process\/m1\/mine'" --yes --wait$/,
    ),
  });
});

describe('a location is proven if a worker has written it', () => {
  const HERE = 'process/m1/mine';
  const attributes = (value: unknown): object => ({
    searchAttributes: {
      indexedFields: { RunnerLocation: { data: Buffer.from(JSON.stringify(value)) } },
    },
  });
  test.each<[what: string, event: object, proven: boolean]>([
    [
      'by the run itself',
      { upsertWorkflowSearchAttributesEventAttributes: attributes(HERE) },
      true,
    ],
    [
      'by the run that it continues',
      {
        workflowExecutionStartedEventAttributes: {
          continuedExecutionRunId: 'r',
          ...attributes(HERE),
        },
      },
      true,
    ],
    [
      'by the client that started it',
      {
        workflowExecutionStartedEventAttributes: {
          continuedExecutionRunId: '',
          ...attributes(HERE),
        },
      },
      false,
    ],
    [
      'by the run itself: another location',
      { upsertWorkflowSearchAttributesEventAttributes: attributes('process/m2/mine') },
      false,
    ],
    [
      'by the run itself: an invalid location',
      {
        upsertWorkflowSearchAttributesEventAttributes: {
          searchAttributes: { indexedFields: { RunnerLocation: { data: Buffer.from('{') } } },
        },
      },
      false,
    ],
    [
      'by an event without an identity',
      { upsertWorkflowSearchAttributesEventAttributes: {} },
      false,
    ],
  ])('%s', (_what, event, proven) => {
    expect(isWrittenByWorker(event, HERE)).toBe(proven);
  });
});

describe('Temporal is queried for the locations of a task queue', () => {
  const about = { taskQueue: 'q', temporal: { namespace: 'n' } } as Parameters<
    typeof checkLocation
  >[0];
  const place = { compute: 'process', cluster: 'm1', installation: 'mine' } as const;
  const answering = (...answers: (() => object)[]): ConnectionLike =>
    ({
      plugins: [],
      close: async () => undefined,
      ensureConnected: async () => undefined,
      workflowService: {
        listWorkflowExecutions: async () => (answers.length > 1 ? answers.shift() : answers[0])?.(),
      },
    }) as unknown as ConnectionLike;
  const refuse = (): never => {
    throw Object.assign(new Error('3 INVALID_ARGUMENT: no search attribute RunnerLocation'), {
      code: 3,
      details: 'no search attribute RunnerLocation',
      metadata: new Map(),
    });
  };

  test('again if Temporal rejects the first query, because search attributes may be new', async () => {
    expect(
      await checkLocation(
        about,
        answering(refuse, refuse, () => ({ executions: [] })),
        async () => place,
      ),
    ).toMatchObject({ level: 'ok' });
  });

  test('a failed query is reported with its causes', async () => {
    const away = async (): Promise<never> => {
      throw new Error('the cluster has no name', {
        cause: new Error('namespaces "kube-system" is forbidden'),
      });
    };
    expect(await checkLocation(about, answering(refuse), away)).toMatchObject({
      level: 'error',
      message: expect.stringMatching(
        /"q".*: the cluster has no name: namespaces "kube-system" is forbidden$/,
      ),
    });
  });
});

describe('credentials', () => {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-credentials-'));
  afterAll(() => rmSync(dir, { recursive: true }));
  writeFileSync(join(dir, 'good'), 'ghp_secret');
  const good = { type: 'pat', tokenFile: join(dir, 'good'), scopes: ['acme'] };
  const bad = { type: 'pat', tokenFile: join(dir, 'bad'), scopes: ['acme'] };

  test('an unreadable credential is a warning if another one is readable', async () => {
    expect(await checkCredentials(parseCredentials({ good, bad }))).toEqual([
      { level: 'ok', message: 'credential "good" can be read' },
      {
        level: 'warning',
        message: `credential "bad": cannot read file ${dir}/bad: ENOENT`,
        fix: expect.stringMatching(/^put the secret there/),
      },
    ]);
  });

  test('no readable credential is an error', async () => {
    expect(await checkCredentials(parseCredentials({ bad }))).toMatchObject([{ level: 'error' }]);
  });

  test("each has a task queue with its server's rate, and never more than 90 at once", () => {
    const ghes = { apiUrl: 'https://ghes.test/api/v3' };
    expect(
      ciQueuesOf(
        parseCredentials({
          cloud: good,
          ghes: { ...good, ...ghes },
          slow: { ...good, ...ghes, pointsPerMinute: 300, maxInFlight: 10 },
          wide: { ...good, ...ghes, maxInFlight: 100 },
        }),
      ),
    ).toEqual([
      { credential: 'cloud', concurrency: 90, maxPerSecond: 3 },
      { credential: 'ghes', concurrency: 90 },
      { credential: 'slow', concurrency: 10, maxPerSecond: 1 },
      { credential: 'wide', concurrency: 90 },
    ]);
  });
});

test.each([
  ['plain', "'plain'"],
  ["it's", "'it''s'"],
  ['back\\slash', "'back\\\\slash'"],
])('a list filter quotes %s', (value, expected) => {
  expect(quoteLiteral(value)).toBe(expected);
});

test('metrics count reported events', async () => {
  const metrics = createMetrics();
  metrics.ciRequest({
    credential: 'default',
    route: 'DELETE /x',
    status: 204,
    ms: 120,
    rateLimitRemaining: 4_999,
  });
  metrics.ciRequest({
    credential: 'default',
    route: 'DELETE /x',
    status: undefined,
    ms: 5,
    rateLimitRemaining: undefined,
  });
  metrics.kubernetesRequest({ verb: 'create', resource: 'pods', status: 201, ms: 30 });
  metrics.kubernetesRequest({ verb: 'watch', resource: 'pods', status: 0, ms: 30 });
  metrics.podWait(true);
  metrics.webhook('accepted');
  const text = await metrics.registry.metrics();
  for (const line of [
    'holdfast_ci_requests_total{credential="default",route="DELETE /x",status="204"} 1',
    'holdfast_ci_requests_total{credential="default",route="DELETE /x",status="none"} 1',
    'holdfast_ci_request_duration_seconds_sum{credential="default",route="DELETE /x"} 0.125',
    'holdfast_ci_rate_limit_remaining{credential="default"} 4999',
    'holdfast_kubernetes_requests_total{verb="create",resource="pods",status="201"} 1',
    'holdfast_kubernetes_requests_total{verb="watch",resource="pods",status="none"} 1',
    'holdfast_pod_wait_completions_total{completed="true"} 1',
    'holdfast_webhook_deliveries_total{outcome="accepted"} 1',
  ]) {
    expect(text.split('\n')).toContain(line);
  }
});
