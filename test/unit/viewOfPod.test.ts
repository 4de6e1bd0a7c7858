import { describe, expect, test } from '@jest/globals';
import type { V1ContainerStatus, V1Pod } from '@kubernetes/client-node';
import { deletedPodView } from '../../activities/compute/deletedPodView.ts';
import { toPodView } from '../../activities/compute/kubernetes/podView.ts';
import { isBusy } from '../../core/domain/podConditions.ts';
import type { PodView } from '../../core/domain/pod.ts';

const NOW = '2026-03-01T12:00:00.500Z';
/** The time this many seconds after the full minute of NOW. */
const at = (seconds: number): string =>
  new Date(Date.parse('2026-03-01T12:00:00Z') + seconds * 1_000).toISOString();

/** Times are strings, as in the API server's JSON. */
type Json = Record<string, unknown>;

function pod(status: Json, more: { metadata?: Json; spec?: Json } = {}): V1Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'runner-a-0123456789',
      namespace: 'ci',
      uid: 'u-1',
      creationTimestamp: '2026-03-01T11:59:00Z',
      annotations: { 'holdfast.dev/workflow-id': 'runner-a' },
      ...more.metadata,
    },
    spec: { containers: [], nodeName: 'n1', ...more.spec },
    status: { conditions: [{ type: 'PodScheduled', status: 'True' }], ...status },
  } as unknown as V1Pod;
}

const container = (name: string, state: Json, more: Json = {}): V1ContainerStatus =>
  ({
    name,
    image: 'i',
    imageID: '',
    ready: false,
    started: false,
    restartCount: 0,
    lastState: {},
    state,
    ...more,
  }) as unknown as V1ContainerStatus;
const waiting = (reason: string, message?: string): Json => ({
  waiting: { reason, ...(message ? { message } : {}) },
});
const running = { running: { startedAt: '2026-03-01T11:59:10Z' } };
const terminated = (exitCode: number, more: Json = {}): Json => ({
  terminated: {
    exitCode,
    reason: exitCode === 0 ? 'Completed' : 'Error',
    startedAt: '2026-03-01T11:59:10Z',
    finishedAt: '2026-03-01T11:59:50Z',
    ...more,
  },
});
const runnerIs = (state: Json, more: Json = {}): Json => ({
  containerStatuses: [container('runner', state, more)],
});
const stepIs = (runner: Json, uploader: Json, status: Json = { phase: 'Running' }): V1Pod =>
  pod(
    {
      ...status,
      containerStatuses: [container('holdfast-uploader', uploader), container('runner', runner)],
    },
    {
      metadata: {
        annotations: {
          'holdfast.dev/workflow-id': 'runner-a',
          'holdfast.dev/probes': 'command',
          'holdfast.dev/upload-timeout': '5m0s',
        },
      },
    },
  );
const disrupted = (reason: string): Json => ({
  conditions: [
    { type: 'PodScheduled', status: 'True' },
    { type: 'DisruptionTarget', status: 'True', reason },
  ],
});

/** Statuses as a real API server, kubelet or controller writes them (Kubernetes 1.34), reduced to the relevant fields. */
const CASES: [string, V1Pod, Partial<PodView>, (keyof PodView)[]?][] = [
  [
    'created, not yet seen by a scheduler',
    pod({ phase: 'Pending', conditions: undefined }, { spec: { nodeName: undefined } }),
    {
      scheduled: false,
      ended: false,
      deleted: false,
      terminating: false,
      createdAt: '2026-03-01T11:59:00Z',
    },
    ['unschedulable', 'node', 'startedAt', 'problem', 'exit', 'online', 'busy'],
  ],
  [
    'unschedulable',
    pod(
      {
        phase: 'Pending',
        conditions: [
          {
            type: 'PodScheduled',
            status: 'False',
            reason: 'Unschedulable',
            message: '0/3 nodes are available: 3 Insufficient cpu.',
          },
        ],
      },
      { spec: { nodeName: undefined } },
    ),
    {
      scheduled: false,
      unschedulable: '0/3 nodes are available: 3 Insufficient cpu.',
      ended: false,
    },
  ],
  [
    'scheduling gated',
    pod(
      {
        phase: 'Pending',
        conditions: [{ type: 'PodScheduled', status: 'False', reason: 'SchedulingGated' }],
      },
      { spec: { nodeName: undefined } },
    ),
    { scheduled: false, unschedulable: 'SchedulingGated' },
  ],
  [
    'scheduled, container being created',
    pod({ phase: 'Pending', ...runnerIs(waiting('ContainerCreating')) }),
    { scheduled: true, node: 'n1', ended: false },
    ['problem', 'startedAt', 'unschedulable'],
  ],
  ...(['ErrImagePull', 'ImagePullBackOff', 'ErrImageNeverPull', 'ImageInspectError'].map(
    (reason) => [
      reason,
      pod({ phase: 'Pending', ...runnerIs(waiting(reason, 'no such image')) }),
      {
        ended: false,
        problem: {
          kind: 'image_pull',
          message: `container runner: ${reason}: no such image`,
          since: NOW,
        },
      },
      ['startedAt'],
    ],
  ) as [string, V1Pod, Partial<PodView>, (keyof PodView)[]][]),
  [
    'InvalidImageName',
    pod({ phase: 'Pending', ...runnerIs(waiting('InvalidImageName', 'bad reference')) }),
    {
      problem: {
        kind: 'invalid_image',
        message: 'container runner: InvalidImageName: bad reference',
        since: NOW,
      },
    },
  ],
  [
    'CreateContainerConfigError',
    pod({
      phase: 'Pending',
      ...runnerIs(waiting('CreateContainerConfigError', 'secret "x" not found')),
    }),
    {
      problem: {
        kind: 'config',
        message: 'container runner: CreateContainerConfigError: secret "x" not found',
        since: NOW,
      },
    },
  ],
  [
    'an image problem of a sidecar',
    pod({
      phase: 'Pending',
      initContainerStatuses: [container('dind', waiting('ImagePullBackOff'))],
      ...runnerIs(waiting('PodInitializing')),
    }),
    {
      problem: {
        kind: 'image_pull',
        message: 'container dind: ImagePullBackOff: no message',
        since: NOW,
      },
    },
  ],
  [
    'running',
    pod({ phase: 'Running', ...runnerIs(running, { ready: true, started: true }) }),
    { startedAt: '2026-03-01T11:59:10Z', ended: false },
    ['online', 'busy', 'exit', 'problem'],
  ],
  [
    'completed',
    pod({ phase: 'Succeeded', ...runnerIs(terminated(0)) }),
    {
      ended: true,
      deleted: false,
      startedAt: '2026-03-01T11:59:10Z',
      exit: { code: 0, oomKilled: false, finishedAt: '2026-03-01T11:59:50Z' },
    },
  ],
  [
    'a store that does not return the files of earlier steps',
    pod({
      phase: 'Failed',
      initContainerStatuses: [container('holdfast-shared', terminated(1))],
      ...runnerIs(waiting('PodInitializing')),
    }),
    {
      ended: true,
      problem: {
        kind: 'store',
        message: 'init container holdfast-shared ended with exit code 1: Error',
        since: NOW,
      },
    },
    ['startedAt', 'exit'],
  ],
  [
    'ended, and stored',
    stepIs(terminated(0), terminated(0)),
    { ended: true, exit: { code: 0, oomKilled: false, finishedAt: '2026-03-01T11:59:50Z' } },
    ['uploadingUntil'],
  ],
  [
    'ended, and being stored: a short run without a startup probe',
    stepIs(terminated(3), running),
    {
      ended: false,
      online: true,
      uploadingUntil: '2026-03-01T12:05:30.500Z',
      exit: { code: 3, oomKilled: false, finishedAt: '2026-03-01T11:59:50Z' },
    },
  ],
  [
    'running, with its uploader',
    stepIs(running, running),
    { ended: false, online: false },
    ['uploadingUntil', 'exit'],
  ],
  [
    'ended, evicted while it was being stored',
    stepIs(terminated(0), running, { phase: 'Failed' }),
    { ended: true },
  ],
  [
    'ended, with too large a SHARED_DIR',
    stepIs(
      terminated(0),
      terminated(1, { message: '{"end":"stored","leftOut":[],"sharedDirFault":"too much"}\n' }),
    ),
    {
      ended: true,
      exit: {
        code: 0,
        oomKilled: false,
        finishedAt: '2026-03-01T11:59:50Z',
        uploadFailure: { by: 'step', why: 'too much' },
      },
    },
  ],
  [
    'ended, and not stored',
    stepIs(terminated(0), terminated(1, { message: '{"error":"no space left"}' })),
    {
      ended: true,
      exit: {
        code: 0,
        oomKilled: false,
        finishedAt: '2026-03-01T11:59:50Z',
        uploadFailure: { by: 'store', why: 'no space left' },
      },
    },
  ],
  [
    'ended, its uploader killed',
    stepIs(terminated(0), terminated(137)),
    {
      ended: true,
      exit: {
        code: 0,
        oomKilled: false,
        finishedAt: '2026-03-01T11:59:50Z',
        uploadFailure: { by: 'store', why: 'the uploader ended with exit code 137' },
      },
    },
  ],
  [
    'exit code 7',
    pod({ phase: 'Failed', ...runnerIs(terminated(7)) }),
    { ended: true, exit: { code: 7, oomKilled: false, finishedAt: '2026-03-01T11:59:50Z' } },
  ],
  [
    'with a termination message',
    pod({ phase: 'Failed', ...runnerIs(terminated(1, { message: '{"reason":"timeout"}' })) }),
    {
      exit: {
        code: 1,
        oomKilled: false,
        finishedAt: '2026-03-01T11:59:50Z',
        message: '{"reason":"timeout"}',
      },
    },
  ],
  [
    'OOM-killed',
    pod({ phase: 'Failed', ...runnerIs(terminated(137, { reason: 'OOMKilled' })) }),
    { ended: true, exit: { code: 137, oomKilled: true, finishedAt: '2026-03-01T11:59:50Z' } },
  ],
  [
    'a process of its job was OOM-killed, not the runner',
    pod({ phase: 'Succeeded', ...runnerIs(terminated(0, { reason: 'OOMKilled' })) }),
    { exit: { code: 0, oomKilled: false, finishedAt: '2026-03-01T11:59:50Z' } },
  ],
  [
    'killed, not because of memory',
    pod({ phase: 'Failed', ...runnerIs(terminated(137)) }),
    { exit: { code: 137, oomKilled: false, finishedAt: '2026-03-01T11:59:50Z' } },
  ],
  [
    'could not start its command',
    pod({
      phase: 'Failed',
      ...runnerIs({
        terminated: {
          exitCode: 128,
          reason: 'StartError',
          message: 'exec: "nope": not found',
          startedAt: '1970-01-01T00:00:00Z',
          finishedAt: '2026-03-01T11:59:50Z',
        },
      }),
    }),
    {
      ended: true,
      exit: {
        code: 128,
        oomKilled: false,
        finishedAt: '2026-03-01T11:59:50Z',
        message: 'exec: "nope": not found',
      },
    },
    ['startedAt'],
  ],
  [
    'the kubelet lost the container, and its exit code 137 is not real',
    pod({
      phase: 'Failed',
      ...runnerIs({
        terminated: {
          exitCode: 137,
          reason: 'ContainerStatusUnknown',
          message: 'The container could not be located when the pod was terminated',
          startedAt: null,
          finishedAt: null,
        },
      }),
    }),
    { ended: true },
    ['exit', 'startedAt'],
  ],
  [
    'the runner has ended, a native sidecar still runs',
    pod({
      phase: 'Running',
      initContainerStatuses: [container('dind', running)],
      ...runnerIs(terminated(0)),
    }),
    { ended: true, exit: { code: 0, oomKilled: false, finishedAt: '2026-03-01T11:59:50Z' } },
  ],
  [
    'an ordinary sidecar has ended, the runner runs',
    pod({
      phase: 'Running',
      containerStatuses: [container('proxy', terminated(1)), container('runner', running)],
    }),
    { ended: false, startedAt: '2026-03-01T11:59:10Z' },
    ['exit'],
  ],
  [
    'a failed init container',
    pod({
      phase: 'Failed',
      initContainerStatuses: [container('setup', terminated(2, { message: 'disk full' }))],
      ...runnerIs(waiting('PodInitializing')),
    }),
    {
      ended: true,
      problem: {
        kind: 'config',
        message: 'init container setup ended with exit code 2: disk full',
        since: NOW,
      },
    },
    ['exit', 'startedAt'],
  ],
  [
    'the registration container runs, so the runner may be registered from now on',
    pod({
      phase: 'Pending',
      initContainerStatuses: [
        container('setup', terminated(0, { startedAt: '2026-03-01T11:59:01Z' })),
        container('holdfast-register', running),
      ],
      ...runnerIs(waiting('PodInitializing')),
    }),
    { ended: false, startedAt: '2026-03-01T11:59:10Z' },
    ['exit', 'problem', 'online'],
  ],
  [
    'the registration container has ended: the pod counts as started since it began',
    pod({
      phase: 'Running',
      initContainerStatuses: [container('holdfast-register', terminated(0))],
      ...runnerIs({ running: { startedAt: '2026-03-01T11:59:55Z' } }),
    }),
    { ended: false, startedAt: '2026-03-01T11:59:10Z' },
    ['exit', 'problem'],
  ],
  [
    'the registration container failed: the runner has the same end',
    pod({
      phase: 'Failed',
      initContainerStatuses: [container('holdfast-register', terminated(1))],
      ...runnerIs(waiting('PodInitializing')),
    }),
    {
      ended: true,
      startedAt: '2026-03-01T11:59:10Z',
      exit: { code: 1, oomKilled: false, finishedAt: '2026-03-01T11:59:50Z' },
    },
    ['problem'],
  ],
  [
    'the registration container could not start',
    pod({
      phase: 'Failed',
      initContainerStatuses: [
        container('holdfast-register', {
          terminated: {
            exitCode: 128,
            reason: 'StartError',
            message: 'exec: "/bin/sh": not found',
            startedAt: '1970-01-01T00:00:00Z',
            finishedAt: '2026-03-01T11:59:50Z',
          },
        }),
      ],
      ...runnerIs(waiting('PodInitializing')),
    }),
    {
      ended: true,
      problem: {
        kind: 'config',
        message:
          'init container holdfast-register ended with exit code 128: exec: "/bin/sh": not found',
        since: NOW,
      },
    },
    ['startedAt'],
  ],
  [
    'a successful init container',
    pod({
      phase: 'Pending',
      initContainerStatuses: [container('setup', terminated(0))],
      ...runnerIs(waiting('PodInitializing')),
    }),
    { ended: false },
    ['problem'],
  ],
  [
    'evicted by the kubelet, without container statuses',
    pod({
      phase: 'Failed',
      reason: 'Evicted',
      message: 'The node was low on resource: memory.',
      ...disrupted('TerminationByKubelet'),
    }),
    { ended: true, reason: 'Evicted', disruptionReason: 'TerminationByKubelet' },
    ['exit', 'startedAt'],
  ],
  [
    'node shutdown',
    pod({
      phase: 'Failed',
      reason: 'Terminated',
      message: 'Pod was terminated in response to imminent node shutdown.',
      ...disrupted('TerminationByKubelet'),
      ...runnerIs(terminated(143)),
    }),
    {
      ended: true,
      reason: 'Terminated',
      disruptionReason: 'TerminationByKubelet',
      exit: { code: 143, oomKilled: false, finishedAt: '2026-03-01T11:59:50Z' },
    },
  ],
  [
    'evicted through the API, in its grace period',
    pod(
      { phase: 'Running', ...disrupted('EvictionByEvictionAPI'), ...runnerIs(running) },
      { metadata: { deletionTimestamp: '2026-03-01T12:00:30Z', deletionGracePeriodSeconds: 30 } },
    ),
    {
      ended: false,
      terminating: true,
      terminationDeadline: '2026-03-01T12:00:30.500Z',
      terminationRequestedAt: '2026-03-01T12:00:00.000Z',
      disruptionReason: 'EvictionByEvictionAPI',
    },
  ],
  [
    'stopped by the kubelet, and deleted later',
    pod(
      {
        phase: 'Running',
        conditions: [
          {
            type: 'DisruptionTarget',
            status: 'True',
            reason: 'TerminationByKubelet',
            lastTransitionTime: '2026-03-01T11:59:40Z',
          },
        ],
        ...runnerIs(running),
      },
      { metadata: { deletionTimestamp: '2026-03-01T12:00:30Z', deletionGracePeriodSeconds: 30 } },
    ),
    { ended: false, terminating: true, terminationRequestedAt: '2026-03-01T11:59:40.000Z' },
  ],
  [
    'preempted',
    pod(
      { phase: 'Running', ...disrupted('PreemptionByScheduler'), ...runnerIs(running) },
      { metadata: { deletionTimestamp: '2026-03-01T12:00:30Z' } },
    ),
    { disruptionReason: 'PreemptionByScheduler', terminating: true, ended: false },
  ],
  [
    'on a lost node',
    pod(
      {
        phase: 'Running',
        reason: 'NodeLost',
        conditions: [
          { type: 'Ready', status: 'False' },
          { type: 'DisruptionTarget', status: 'True', reason: 'DeletionByTaintManager' },
        ],
        ...runnerIs(running, { ready: true, started: true }),
      },
      { metadata: { deletionTimestamp: '2026-03-01T12:00:30Z' } },
    ),
    {
      ended: false,
      terminating: true,
      reason: 'NodeLost',
      disruptionReason: 'DeletionByTaintManager',
      scheduled: true,
    },
  ],
  [
    'a disruption that was cancelled',
    pod({
      phase: 'Running',
      conditions: [{ type: 'DisruptionTarget', status: 'False', reason: 'PreemptionByScheduler' }],
      ...runnerIs(running),
    }),
    { ended: false },
    ['disruptionReason'],
  ],
  [
    'failed without anything else',
    pod({ phase: 'Failed' }),
    { ended: true },
    ['exit', 'problem', 'reason'],
  ],
  [
    'rejected by the node',
    pod({ phase: 'Failed', reason: 'OutOfcpu', message: "Node didn't have enough resource: cpu" }),
    { ended: true, reason: 'OutOfcpu' },
  ],
  [
    'without a status',
    pod({ conditions: undefined }, { spec: { nodeName: undefined } }),
    { ended: false, scheduled: false },
  ],
];

describe('viewOfPod', () => {
  test.each(CASES)('%s', (_, given, expected, absent = []) => {
    const view = toPodView(given, NOW);
    expect(view).toMatchObject({
      name: 'runner-a-0123456789',
      namespace: 'ci',
      uid: 'u-1',
      workflowId: 'runner-a',
      ...expected,
    });
    for (const key of absent) expect(view).not.toHaveProperty(key);
  });

  const probes = {
    metadata: {
      annotations: { 'holdfast.dev/workflow-id': 'runner-a', 'holdfast.dev/probes': 'runner' },
    },
  };
  test.each<[string, Json, Json, boolean | undefined, boolean | undefined]>([
    [
      'no probes: unknown',
      {},
      runnerIs(running, { started: true, ready: true }),
      undefined,
      undefined,
    ],
    ['waiting', probes, runnerIs(waiting('ContainerCreating')), false, false],
    [
      'running, not yet registered',
      probes,
      runnerIs(running, { started: false, ready: false }),
      false,
      false,
    ],
    ['registered and idle', probes, runnerIs(running, { started: true, ready: true }), true, false],
    [
      'registered, before the response to its first readiness probe',
      probes,
      runnerIs(running, { started: true, ready: false }),
      true,
      undefined,
    ],
    ['ended', probes, runnerIs(terminated(0), { started: false, ready: false }), false, false],
    ['no status yet', probes, {}, false, false],
  ])('online and busy: %s', (_, more, status, online, busy) => {
    const view = toPodView(pod({ phase: 'Running', ...status }, more as { metadata?: Json }), NOW);
    expect([view.online, view.busy]).toEqual([online, busy]);
  });

  const at = (seconds: number): string => new Date(Date.parse(NOW) + seconds * 1_000).toISOString();
  const probed = (kind: string, ready: boolean, more: Json = {}): V1Pod =>
    pod(
      { phase: 'Running', ...runnerIs(running, { started: true, ready }) },
      { metadata: { annotations: { 'holdfast.dev/probes': kind }, ...more } },
    );

  test('a runner that is not ready for 1.5 s from its start is busy since its start', () => {
    const first = toPodView(probed('runner', false), NOW);
    expect([first.busy, first.assumedBusyFrom, isBusy(first, Date.parse(at(1)))]).toEqual([
      undefined,
      at(1.5),
      undefined,
    ]);
    // Another event of the pod does not restart the time.
    const later = toPodView(probed('runner', false), at(1), first);
    expect([later.assumedBusyFrom, isBusy(later, Date.parse(at(1.5)))]).toEqual([at(1.5), true]);
  });

  test('a runner that is stopped before that may not be probed: whether it is busy is unknown', () => {
    const first = toPodView(probed('runner', false), NOW);
    const going = toPodView(probed('runner', false, { deletionTimestamp: at(30) }), at(1), first);
    expect(going).toMatchObject({ online: true });
    const still = toPodView(probed('runner', false, { deletionTimestamp: at(30) }), at(2), going);
    expect([isBusy(going, Date.parse(at(2))), isBusy(still, Date.parse(at(2)))]).toEqual([
      undefined,
      undefined,
    ]);
    const busy = toPodView(probed('runner', false), at(1.6), first);
    expect(
      isBusy(
        toPodView(probed('runner', false, { deletionTimestamp: at(30) }), at(2), busy),
        Date.parse(at(2)),
      ),
    ).toBe(true);
  });

  test('after it was ready once, not ready means busy at once, and ready means idle again', () => {
    const idle = toPodView(probed('runner', true), at(1), toPodView(probed('runner', false), NOW));
    expect(idle).toMatchObject({ busy: false });
    expect(idle).not.toHaveProperty('assumedBusyFrom');
    const busy = toPodView(probed('runner', false), at(2), idle);
    expect(busy).toMatchObject({ busy: true });
    expect(toPodView(probed('runner', true), at(3), busy)).toMatchObject({ busy: false });
  });

  test('a failed probe is not a job: ready again means idle again, also for an ephemeral runner', () => {
    const missed = toPodView(
      probed('one-job-runner', false),
      at(1),
      toPodView(probed('one-job-runner', true), NOW),
    );
    expect(missed).toMatchObject({ online: true, busy: true });
    expect(toPodView(probed('one-job-runner', true), at(2), missed)).toMatchObject({
      online: true,
      busy: false,
    });
  });

  test.each<[string, PodView['online'], boolean, boolean | undefined, boolean | undefined]>([
    ['never online', false, false, false, false],
    ['online, and idle', true, true, true, false],
    ['online, and busy', true, false, true, true],
    ['not seen before, and idle', undefined, true, true, false],
    ['not seen before: unknown', undefined, false, undefined, undefined],
  ])(
    'a terminating pod is reported as started without a startup probe: %s',
    (_, before, ready, online, busy) => {
      const terminating = probed('runner', ready, { deletionTimestamp: at(30) });
      const previous =
        before === undefined
          ? undefined
          : { ...toPodView(probed('runner', true), NOW), online: before, busy: false };
      const view = toPodView(terminating, at(1), previous);
      expect([view.online, view.busy]).toEqual([online, busy]);
    },
  );

  test('a plain command reports that it runs, and no jobs', () => {
    const view = toPodView(probed('command', false), NOW);
    expect(view.online).toBe(true);
    expect(isBusy(view, Date.parse(at(60)))).toBeUndefined();
  });

  const recorded = (message: string): Json =>
    runnerIs({
      terminated: { exitCode: 143, startedAt: NOW, finishedAt: NOW, reason: 'Error', message },
    });
  test.each<[string, string, object]>([
    [
      'of a runner',
      '{"exitCode":143,"signal":"SIGTERM","reason":"evicted","startedAt":null,"endedAt":"x","job":"interrupted"}\n',
      { record: { reason: 'evicted', job: 'interrupted' } },
    ],
    [
      'of a command that ended by itself',
      '{"exitCode":143,"signal":null,"reason":null,"startedAt":null,"endedAt":"x"}',
      { record: {} },
    ],
    [
      'with unknown values',
      '{"exitCode":143,"signal":null,"reason":"bored","job":7}',
      { record: {} },
    ],
    ['cut off', '{"exitCode":143,"signal":', { message: '{"exitCode":143,"signal":' }],
    ["somebody else's JSON", '{"exitCode":1}', { message: '{"exitCode":1}' }],
    ['plain text', 'out of disk', { message: 'out of disk' }],
  ])("the supervisor's record: %s", (_, message, more) => {
    expect(toPodView(pod({ phase: 'Failed', ...recorded(message) }), NOW).exit).toEqual({
      code: 143,
      oomKilled: false,
      finishedAt: expect.any(String),
      ...more,
    });
  });

  test('a problem of the same kind and pod keeps the time at which it was first seen', () => {
    const pulling = toPodView(
      pod({ phase: 'Pending', ...runnerIs(waiting('ErrImagePull', 'a')) }),
      NOW,
    );
    const later = '2026-03-01T12:05:00Z';
    const backOff = pod({ phase: 'Pending', ...runnerIs(waiting('ImagePullBackOff', 'b')) });
    expect(toPodView(backOff, later, pulling).problem).toEqual({
      kind: 'image_pull',
      message: 'container runner: ImagePullBackOff: b',
      since: NOW,
    });
    expect(toPodView(backOff, later, { ...pulling, uid: 'u-0' }).problem?.since).toBe(later);
    const config = pod({ phase: 'Pending', ...runnerIs(waiting('CreateContainerConfigError')) });
    expect(toPodView(config, later, pulling).problem?.since).toBe(later);
  });

  test('is the same for Date objects and JSON strings', () => {
    const json = pod(
      { phase: 'Succeeded', ...runnerIs(terminated(0)) },
      { metadata: { deletionTimestamp: '2026-03-01T12:00:30Z' } },
    );
    const typed = structuredClone(json);
    typed.metadata!.creationTimestamp = new Date('2026-03-01T11:59:00Z');
    typed.metadata!.deletionTimestamp = new Date('2026-03-01T12:00:30Z');
    const end = typed.status!.containerStatuses![0]!.state!.terminated!;
    end.startedAt = new Date('2026-03-01T11:59:10Z');
    end.finishedAt = new Date('2026-03-01T11:59:50Z');
    expect(toPodView(typed, NOW)).toEqual(toPodView(json, NOW));
  });

  test('goneView', () => {
    const last = toPodView(pod({ phase: 'Running', ...runnerIs(running) }), NOW);
    expect(deletedPodView(last)).toEqual({ ...last, deleted: true, ended: true });
  });
});

describe('deadlines of the cluster, on a worker with another clock', () => {
  const going = pod(
    { phase: 'Running', ...runnerIs(running) },
    { metadata: { deletionTimestamp: at(30), deletionGracePeriodSeconds: 30 } },
  );
  const shorter = pod(
    { phase: 'Running', ...runnerIs(running) },
    { metadata: { deletionTimestamp: at(11), deletionGracePeriodSeconds: 1 } },
  );
  const deadlineOf = (seen: V1Pod, nowSeconds: number, previous?: PodView): number =>
    (Date.parse(toPodView(seen, at(nowSeconds), previous).terminationDeadline ?? '') -
      Date.parse(at(0))) /
    1_000;

  test('two minutes ahead: the pod has its whole grace period', () => {
    expect(deadlineOf(going, 120)).toBe(150);
  });

  test('seen again: nothing is added', () => {
    expect(deadlineOf(going, 140, toPodView(going, at(120)))).toBe(150);
  });

  test('behind, or seen for the first time long after: close to the deadline of the cluster', () => {
    expect(deadlineOf(going, -60)).toBe(30);
    expect(deadlineOf(going, 3_600)).toBe(150);
  });

  test('a deletion with a shorter grace period', () => {
    expect(deadlineOf(shorter, 130, toPodView(going, at(120)))).toBe(131);
  });

  test('an upload', () => {
    const uploads = stepIs(terminated(0), running);
    expect(toPodView(uploads, at(110)).uploadingUntil).toBe(at(110 + 330).replace('.000Z', 'Z'));
  });
});
