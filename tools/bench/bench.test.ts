import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { describe, expect, test } from '@jest/globals';
import type { Benchmark } from './benchmark.ts';
import { BENCHMARKS } from './benchmarks/index.ts';
import { mapConcurrently } from './concurrency.ts';
import { parseMetrics, sum } from './metrics.ts';
import { cpuOfJobs, cpuSecondsOf, cpuSecondsOfFamily } from './cpuAccount.ts';
import { temporalRequests } from './temporalRequests.ts';
import { parseTaskEvent } from './processes/taskTimes.ts';
import { isMet, missed, nested, reportTable } from './report.ts';
import { percentile, roundTo } from './statistics.ts';
import { until } from '../../test/support/until.ts';

describe('the figures of the benchmarks', () => {
  // Other programs read these keys. A new key is compatible, a changed one is not.
  test.each([
    [
      'lifecycle',
      [
        'bench.workflowTasks',
        'bench.workflowTasksInSet',
        'bench.events',
        'bench.bytes',
        'bench.temporalRequests',
        'bench.temporalRequestsInSet',
        'bench.visibilityWrites',
        'bench.githubRequests',
        'bench.kubernetesRequests',
        ...['real', 'slow'].flatMap((profile) =>
          ['workflowTasks', 'events', 'bytes', 'temporalRequests', 'visibilityWrites'].map(
            (key) => `${profile}.${key}`,
          ),
        ),
      ],
    ],
    [
      'scaleup',
      [
        'runners',
        'perSecond',
        'createdP95Ms',
        'onlineP95Ms',
        'cpuMsPerRunner',
        'floor.perSecond',
        'floor.share',
      ],
    ],
    ['finish', ['runners', 'p50Ms', 'p95Ms', 'p99Ms', 'perSecond', 'floor.p95Ms', 'floor.times']],
    ['waiting', ['runners', 'workerRssMiB', 'workerCpuPercent']],
    [
      'churn',
      [
        'jobs',
        'jobsPerSecond',
        'goneP95Ms',
        'replacementP95Ms',
        'cpuMsPerJob',
        'floor.jobsPerSecond',
        'floor.goneP95Ms',
        'floor.replacementP95Ms',
        'floor.share',
        'goneTimes',
        'replacementTimes',
        'cpuTimes',
      ],
    ],
    [
      'steady',
      [
        'goneP95Ms',
        'replacementP95Ms',
        'onlineP95Ms',
        'cpuMsPerJob',
        'floor.goneP95Ms',
        'floor.replacementP95Ms',
        'goneTimes',
        'replacementTimes',
      ],
    ],
    [
      'queue',
      [
        ...['0.5', '1', '2', '5'].flatMap((rate) =>
          ['p50Ms', 'p95Ms', 'requestsPerJob', 'cpuMsPerJob', 'floor.p50Ms', 'floor.p95Ms'].map(
            (key) => `rates.${rate}.${key}`,
          ),
        ),
        'burst.requestsPerJob',
        'burst.cpuMsPerJob',
        'singleTimes',
        ...[
          'p50Ms',
          'p95Ms',
          'requestsPerJob',
          'cpuMsPerJob',
          'gitHubRequestsPerJob',
          'burst.p95Ms',
          'burst.gitHubRequestsPerJob',
        ].map((key) => `scaleSet.${key}`),
        'beyondFloorP95Ms',
      ],
    ],
    [
      'fleet',
      [
        ...['1', '10', '50'].flatMap((rate) =>
          ['jobs', 'onlineP50Ms', 'onlineP95Ms', 'reachedPerSecond'].map(
            (key) => `rates.${rate}.${key}`,
          ),
        ),
        ...['deliveries', 'perSecond', 'p50Ms', 'p95Ms', 'p99Ms'].map((key) => `webhook.${key}`),
      ],
    ],
    [
      'events',
      ['events', 'perSecond', 'runs', 'longestHistory', 'carriedKiB', 'earlyRssMiB', 'lateRssMiB'],
    ],
    ['backlog', ['pending', 'takenInMs', 'failedTasks', 'refused']],
    ['recovery', ['runners', 'seconds']],
    ['away', ['runners', 'seconds', 'perSecond', 'startedAfter', 'jobsLeft']],
    [
      'shards',
      [
        'jobs',
        'seconds',
        'servedSeconds',
        'perSecond',
        'runnersPerJob',
        'missed',
        'twice',
        'leastShare',
        'mostShare',
        'onlineP95Ms',
      ],
    ],
    [
      'job',
      [
        'steps',
        'startOverheadP50Ms',
        'startOverheadP95Ms',
        'gapP50Ms',
        'gapP95Ms',
        'floor.gapP50Ms',
        'floor.gapP95Ms',
        'floor.times',
      ],
    ],
    [
      'webhook',
      [
        ...['deliveries', 'refused', 'p50Ms', 'p95Ms', 'rssMiB'].map((key) => `attack.${key}`),
        ...[
          'offeredPerSecond',
          'acceptedPerSecond',
          'comeAgain',
          'otherwise',
          'lost',
          'p95Ms',
          'rssMiB',
        ].map((key) => `flood.${key}`),
      ],
    ],
    [
      'supervisor',
      [
        'runs',
        ...['direct', 'tini', 'supervisor', 'injected'].flatMap((variant) =>
          ['startP50Ms', 'startP95Ms', 'rssMiB', 'exitP50Ms', 'exitP95Ms'].map(
            (key) => `variants.${variant}.${key}`,
          ),
        ),
        ...[
          'pods',
          'folderMB',
          'initP50Ms',
          'initP95Ms',
          'noticedP50Ms',
          'programP50Ms',
          'podP50Ms',
          'plainPodP50Ms',
        ].map((key) => `injection.${key}`),
      ],
    ],
  ])('of %s', (name, keys) => {
    expect(
      Object.keys(BENCHMARKS.find((benchmark) => benchmark.name === name)?.figures ?? {}),
    ).toEqual(keys);
  });
});

describe('percentile: the smallest value that at least that share does not exceed', () => {
  test.each([
    [[7], 0.95, 7],
    [[3, 1, 2], 0.5, 2],
    [Array.from({ length: 100 }, (_, index) => 100 - index), 0.95, 95],
    [Array.from({ length: 20 }, (_, index) => index + 1), 0.99, 20],
    [[5, 1], 0, 1],
  ])('of %j at %d: %d', (values, share, expected) => {
    expect(percentile(values, share)).toBe(expected);
  });

  test('an empty list is rejected', () => {
    expect(() => percentile([], 0.5)).toThrow('percentile');
  });
});

test('round', () => {
  expect([roundTo(1.25, 1), roundTo(1.04, 1), roundTo(99.6)]).toEqual([1.3, 1, 100]);
});

describe('metrics', () => {
  const samples = parseMetrics(
    [
      '# HELP requests_total Requests',
      '# TYPE requests_total counter',
      'requests_total{verb="create",resource="pods",status="201"} 3',
      'requests_total{verb="create",resource="secrets",status="201"} 2',
      'requests_total{verb="get",resource="pods",path="a\\"b,c"} 1e2',
      'up 1',
      '',
    ].join('\n'),
  );

  test('names, labels with escaped quotes, values', () => {
    expect(samples).toHaveLength(4);
    expect(samples[2]).toEqual({
      name: 'requests_total',
      labels: { verb: 'get', resource: 'pods', path: 'a\\"b,c' },
      value: 100,
    });
    expect(samples[3]).toEqual({ name: 'up', labels: {}, value: 1 });
  });

  test('sums by labels', () => {
    expect(sum(samples, 'requests_total')).toBe(105);
    expect(sum(samples, 'requests_total', { verb: 'create' })).toBe(5);
    expect(sum(samples, 'requests_total', { verb: 'create', resource: 'pods' })).toBe(3);
    expect(sum(samples, 'nothing')).toBe(0);
  });
});

describe('budgets', () => {
  test.each([
    [10, { kind: 'max', limit: 10 }, true],
    [10.1, { kind: 'max', limit: 10 }, false],
    [30, { kind: 'min', limit: 30 }, true],
    [29.9, { kind: 'min', limit: 30 }, false],
    [Number.NaN, { kind: 'max', limit: 10 }, false],
    [1, undefined, undefined],
  ] as const)('%d against %j: %s', (value, budget, expected) => {
    expect(isMet(value, budget)).toBe(expected);
  });

  const benchmark: Benchmark = {
    name: 'example',
    summary: '',
    defaultRunners: 1,
    figures: {
      slow: { unit: 'ms', what: 'slowness', budget: { kind: 'max', limit: 1_000 } },
      fast: { unit: '/s', what: 'speed', budget: { kind: 'min', limit: 5 } },
      free: { unit: '', what: 'no budget' },
      'sometimes.measured': {
        unit: '',
        what: 'at will',
        budget: { kind: 'max', limit: 1 },
        optional: true,
      },
    },
    run: () => Promise.reject(new Error('not run')),
  };

  test('missed budgets are named, also in the table', () => {
    const figures = { slow: 1_200, fast: 7, free: 3 };
    expect(missed(benchmark, figures)).toEqual(['slow']);
    const lines = reportTable(benchmark, figures).split('\n');
    expect(lines.find((line) => line.includes('slow '))).toMatch(/1,200 ms.*≤ 1,000.*NO/);
    expect(lines.find((line) => line.includes('fast '))).toMatch(/7 \/s.*≥ 5.*yes/);
  });

  test('a figure that was not measured misses its budget, unless it is optional', () => {
    expect(missed(benchmark, { fast: 7 })).toEqual(['slow']);
    expect(missed(benchmark, { slow: 1, fast: 7, 'sometimes.measured': 2 })).toEqual([
      'sometimes.measured',
    ]);
    expect(reportTable(benchmark, { slow: 1, fast: 7, free: 1 })).not.toContain('sometimes');
  });
});

test('a point in the key of a figure becomes a nested object in the JSON', () => {
  expect(nested({ runs: 3, 'a.b.c': 1, 'a.b.d': 2, 'a.e': 4, 'f.0.5.g': 5 })).toEqual({
    runs: 3,
    a: { b: { c: 1, d: 2 }, e: 4 },
    f: { '0.5': { g: 5 } },
  });
});

describe('events of containerd', () => {
  const line = (topic: string, event: object): string =>
    `2026-01-02 03:04:05.678901234 +0000 UTC k8s.io ${topic} ${JSON.stringify(event)}`;
  test.each([
    [
      'a start, at the time of the event',
      line('/tasks/start', { container_id: 'c', pid: 7 }),
      { container: 'c', kind: 'start', at: Date.UTC(2026, 0, 2, 3, 4, 5, 678) },
    ],
    [
      'an end, at the time in the event',
      line('/tasks/exit', {
        container_id: 'c',
        id: 'c',
        pid: 7,
        exited_at: '2026-01-02T03:04:05.5Z',
      }),
      { container: 'c', kind: 'exit', at: Date.UTC(2026, 0, 2, 3, 4, 5, 500) },
    ],
    [
      'the end of another process in the container is ignored',
      line('/tasks/exit', { container_id: 'c', id: 'exec', exited_at: '2026-01-02T03:04:05.5Z' }),
      undefined,
    ],
    ['another event is ignored', line('/tasks/create', { container_id: 'c' }), undefined],
    [
      'a line that is not an event is ignored',
      'time="now" level=warning msg="/tasks/start"',
      undefined,
    ],
  ])('%s', (_, text, expected) => {
    expect(parseTaskEvent(text)).toEqual(expected);
  });
});

test('mapConcurrently limits concurrency, keeps the order of results, and throws the first error', async () => {
  let running = 0;
  let maxRunning = 0;
  const doubled = await mapConcurrently([1, 2, 3, 4, 5], 2, async (item) => {
    maxRunning = Math.max(maxRunning, ++running);
    await new Promise((resolve) => setImmediate(resolve));
    running--;
    return item * 2;
  });
  expect(doubled).toEqual([2, 4, 6, 8, 10]);
  expect(maxRunning).toBe(2);
  await expect(
    mapConcurrently(
      [1, 2],
      2,
      async (item) => await (item === 2 ? Promise.reject(new Error('two')) : Promise.resolve(item)),
    ),
  ).rejects.toThrow('two');
});

test('the CPU of jobs is that of worker and Temporal, without that of idle ones', () => {
  const spent = {
    wallSeconds: 20,
    cpuSeconds: {
      worker: 6,
      worker2: 2,
      temporal: 8,
      etcd: 4,
      'kube-apiserver': 8,
      'kube-scheduler': 2,
      kwok: 9,
      othersOnThisMachine: 30,
    },
  };
  const idle = {
    wallSeconds: 5,
    cpuSeconds: { worker: 0.5, temporal: 0.5, etcd: 0.5, 'kube-apiserver': 0.5 },
  };
  expect(cpuOfJobs(spent, idle, 100)).toEqual({ ms: 120, times: 1.2 });
  const { temporal, ...others } = spent.cpuSeconds;
  const cluster = {
    ...spent,
    cpuSeconds: {
      ...others,
      'temporal-frontend': 2,
      'temporal-history': 3,
      postgres: temporal - 5,
    },
  };
  expect(
    cpuOfJobs(
      cluster,
      { ...idle, cpuSeconds: { ...idle.cpuSeconds, temporal: 0, postgres: 0.5 } },
      100,
    ),
  ).toEqual({ ms: 120, times: 1.2 });
});

test('requests to Temporal are counted without those of an idle worker, and polls only if they returned a task', () => {
  const samples = parseMetrics(
    [
      'temporal_request_total{operation="RespondWorkflowTaskCompleted",task_queue="a"} 3',
      'temporal_request_total{operation="RespondWorkflowTaskCompleted",task_queue="b"} 1',
      'temporal_request_total{operation="RecordWorkerHeartbeat"} 7',
      'temporal_workflow_task_queue_poll_succeed_total{} 4',
      'temporal_long_request_total{operation="PollActivityTaskQueue"} 10',
      'temporal_long_request_total{operation="PollWorkflowTaskQueue"} 20',
      'temporal_activity_poll_no_task_total{} 8',
    ].join('\n'),
  );
  expect(temporalRequests(samples)).toEqual({
    RespondWorkflowTaskCompleted: 4,
    'workflow polls answered': 4,
    'activity polls answered': 2,
  });
});

test('the CPU time of a process includes that of its running and ended children', async () => {
  const parent = spawn(
    'sh',
    ['-c', '(while :; do :; done) & echo $!; wait; echo ended; read line'],
    { stdio: ['pipe', 'pipe', 'ignore'], detached: true },
  );
  try {
    const pid = parent.pid ?? 0;
    const lines = createInterface({ input: parent.stdout })[Symbol.asyncIterator]();
    const child = Number((await lines.next()).value);
    const ofChildren = async (): Promise<number> =>
      (await cpuSecondsOfFamily(pid)) - (await cpuSecondsOf(pid));
    await until('the running child to be counted', async () => (await ofChildren()) > 0);
    process.kill(child, 'SIGKILL');
    expect((await lines.next()).value).toBe('ended');
    expect(await ofChildren()).toBeGreaterThan(0);
  } finally {
    process.kill(-(parent.pid ?? 0), 'SIGKILL');
  }
});
