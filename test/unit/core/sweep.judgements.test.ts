/** The decision tables of the sweep: findings, and skipped objects with the reason. */
import { describe, expect, test } from '@jest/globals';
import {
  ORPHANED_POD_MESSAGE,
  ORPHANED_STEP_MESSAGE,
  type RunnerPhase,
  type SweepMark,
  type SweepSkip,
  type FindingKind,
} from '../../../core/contract/index.ts';
import type {
  OwnerWorkflow,
  RunnerWorkflow,
  ObservedRegistration,
} from '../../../core/sweep/facts.ts';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import { assessJobObject } from '../../../core/sweep/assessJobObject.ts';
import { assessPod } from '../../../core/sweep/assessPod.ts';
import { assessRegistration } from '../../../core/sweep/assessRegistration.ts';
import { assessResource } from '../../../core/sweep/assessResource.ts';
import { assessRunner } from '../../../core/sweep/assessRunner.ts';
import type { OwnedObject } from '../../../core/sweep/ownedObject.ts';
import { stuckRunnerStep } from '../../../core/sweep/stuckRunnerStep.ts';
import {
  FINISHED,
  HOUR,
  MINUTE,
  NOW,
  RUNNING,
  SECOND,
  SPEC,
  TERMINATED,
  UNKNOWN,
  ago,
  ghost,
  runnerWorkflow,
  object,
  pod,
  view,
} from '../../support/sweptObjects.ts';

const FINE = { kind: 'fine' };
const skips = (why: SweepSkip) => ({ kind: 'skip', why });
const finds = (as: FindingKind, ...parts: string[]) => ({
  kind: 'finding',
  as,
  ...(parts.length > 0
    ? { reason: expect.stringMatching(new RegExp(parts.map((part) => `(?=.*${part})`).join(''))) }
    : {}),
});

const GOING = { terminating: true, terminationDeadline: ago(MINUTE - 1) };
const OVERDUE = { terminating: true, terminationDeadline: ago(MINUTE) };
const old = { createdAtMs: NOW - 24 * HOUR };

describe('a pod', () => {
  test.each<[what: string, pod: OwnedObject, workflow: OwnerWorkflow, expected: object]>([
    ['of a running workflow', pod(), RUNNING, FINE],
    [
      '… that has ended, and is old: its workflow deletes it',
      pod({ ended: true }, old),
      RUNNING,
      FINE,
    ],
    ['… that is on hold', pod({}, { onHold: true }), RUNNING, FINE],
    [
      'that names no workflow',
      pod({}, { identity: undefined as never }),
      UNKNOWN,
      skips('foreign'),
    ],
    ['that is on hold', pod({}, { onHold: true }), TERMINATED, skips('on_hold')],
    [
      'younger than 30 s',
      pod({}, { createdAtMs: NOW - 30 * SECOND + 1 }),
      TERMINATED,
      skips('too_young'),
    ],
    ['30 s old', pod({}, { createdAtMs: NOW - 30 * SECOND }), TERMINATED, finds('orphaned_pod')],
    [
      'whose workflow ended less than 30 s ago',
      pod(),
      { ...TERMINATED, closedAtMs: NOW - 30 * SECOND + 1 },
      skips('too_young'),
    ],
    [
      'being deleted, within its grace period and a minute',
      pod(GOING),
      TERMINATED,
      skips('in_transition'),
    ],
    [
      'being deleted, a minute after its grace period',
      pod(OVERDUE),
      TERMINATED,
      finds('orphaned_pod'),
    ],
    [
      'that is being evicted',
      pod({ disruptionReason: 'EvictionByEvictionAPI' }),
      TERMINATED,
      skips('in_transition'),
    ],
    [
      'that was evicted',
      pod({ disruptionReason: 'EvictionByEvictionAPI', ended: true }),
      TERMINATED,
      finds('orphaned_pod'),
    ],

    [
      'running, its workflow terminated',
      pod(),
      TERMINATED,
      finds('orphaned_pod', ORPHANED_POD_MESSAGE, 'workflow w was terminated by me: because'),
    ],
    [
      'running, its workflow ended with a verdict',
      pod(),
      FINISHED,
      finds('orphaned_pod', ORPHANED_POD_MESSAGE),
    ],
    [
      'running, its workflow unknown to Temporal',
      pod(),
      UNKNOWN,
      finds('orphaned_pod', 'not known to Temporal'),
    ],
    ['busy, its workflow terminated', pod({ busy: true }), TERMINATED, finds('orphaned_pod')],
    [
      'ended, its workflow terminated',
      pod({ ended: true }),
      TERMINATED,
      finds('orphaned_pod', 'the runner has ended'),
    ],
    [
      'ended, its workflow ended with a verdict',
      pod({ ended: true }, { createdAtMs: NOW - 24 * HOUR + 1 }),
      FINISHED,
      skips('retained'),
    ],
    [
      '… and older than maxPodAge',
      pod({ ended: true }, old),
      FINISHED,
      finds('expired_pod', '24h0m0s old'),
    ],
  ])('%s', (_what, it, its, expected) => {
    expect(assessPod(it, its, NOW, SPEC)).toEqual(expect.objectContaining(expected));
  });
});

describe('a Secret or claim', () => {
  const claim = (more: Partial<OwnedObject> = {}): OwnedObject =>
    object({ kind: 'claim', ...more });
  test.each<
    [what: string, it: OwnedObject, workflow: OwnerWorkflow, used: boolean, expected: object]
  >([
    ['of a running workflow', object(), RUNNING, false, FINE],
    [
      'a claim that an input names, such as that of a slot',
      claim({ identity: undefined as never }),
      UNKNOWN,
      false,
      skips('shared_claim'),
    ],
    [
      'a Secret that names no workflow',
      object({ identity: undefined as never }),
      UNKNOWN,
      false,
      skips('foreign'),
    ],
    ['that is on hold', object({ onHold: true }), TERMINATED, false, skips('on_hold')],
    [
      'younger than 30 s',
      object({ createdAtMs: NOW - 30 * SECOND + 1 }),
      TERMINATED,
      false,
      skips('too_young'),
    ],
    [
      'whose workflow ended less than 30 s ago',
      object(),
      { ...TERMINATED, closedAtMs: NOW - 30 * SECOND + 1 },
      false,
      skips('too_young'),
    ],
    [
      'that is being deleted',
      claim({ terminating: true }),
      TERMINATED,
      false,
      skips('in_transition'),
    ],
    ['whose pod exists', object(), TERMINATED, true, skips('in_use')],
    [
      'a Secret whose workflow was terminated',
      object(),
      TERMINATED,
      false,
      finds('orphaned_resource', 'the Secret', 'was terminated by me'),
    ],
    [
      'a claim of a workflow that has ended',
      claim(),
      FINISHED,
      false,
      finds('orphaned_resource', 'the claim'),
    ],
    ['… that Temporal does not know', claim(), UNKNOWN, false, finds('orphaned_resource')],
  ])('%s', (_what, it, its, used, expected) => {
    expect(assessResource(it, its, used, NOW, SPEC)).toEqual(expect.objectContaining(expected));
  });
});

describe('an object that a job has created', () => {
  const of = (more: Partial<OwnedObject> = {}): OwnedObject =>
    object({ kind: 'job pod', runnerPod: 'p', ...more });

  test.each<[what: string, it: OwnedObject, used: boolean, expected: object]>([
    ["whose runner's pod is there", of(), true, skips('in_use')],
    ['… even if it is on hold', of({ onHold: true }), true, skips('in_use')],
    [
      'of a runner that is not proven to be a runner of Holdfast',
      of({ identity: undefined as never }),
      false,
      skips('foreign'),
    ],
    ['that is on hold', of({ onHold: true }), false, skips('on_hold')],
    ['younger than 30 s', of({ createdAtMs: NOW - 30 * SECOND + 1 }), false, skips('too_young')],
    ['that is being deleted', of({ terminating: true }), false, skips('in_transition')],
    [
      'a pod without its runner',
      of(),
      false,
      finds('orphaned_resource', 'the job pod', 'whose pod p is gone'),
    ],
    [
      'a Secret without its runner',
      of({ kind: 'job secret' }),
      false,
      finds('orphaned_resource', 'the job secret'),
    ],
  ])('%s', (_what, it, used, expected) => {
    expect(assessJobObject(it, used, NOW, SPEC)).toEqual(expected);
  });
});

describe('a registration', () => {
  test.each<[what: string, it: ObservedRegistration, expected: object]>([
    ['whose workflow runs', ghost({ hasRunner: true }), FINE],
    [
      '… and has no label of Holdfast',
      { ...ghost({ hasRunner: true }), proof: undefined as never },
      FINE,
    ],
    [
      'not proven to be a registration of Holdfast',
      { ...ghost(), proof: undefined as never },
      skips('foreign'),
    ],
    ['whose pod exists', ghost({ hasPod: true }), skips('in_use')],
    [
      'that a deregistration workflow already removes',
      ghost({ deregistrationId: 'deregistration-w' }),
      skips('handed_off'),
    ],
    ['that is online', ghost({ online: true }), skips('online_or_busy')],
    ['that is busy', ghost({ busy: true }), skips('online_or_busy')],
    [
      'with the label of Holdfast, without workflow and pod',
      ghost(),
      finds('orphaned_registration', 'neither a workflow nor a pod'),
    ],
    [
      'of a runner that its workflow has replaced',
      ghost({ superseded: true }),
      finds('orphaned_registration', 'has replaced its runner'),
    ],
    [
      'recorded in Temporal as a registration of Holdfast',
      ghost({ proof: 'record' }),
      finds('orphaned_registration'),
    ],
  ])('%s', (_what, it, expected) => {
    expect(assessRegistration(it)).toEqual(expect.objectContaining(expected));
  });
});

describe('a running workflow', () => {
  const away = { hasPoller: false };
  const busyFor = (ms: number): OwnedObject => pod({ busy: true, readinessChangedAt: ago(ms) });
  const command = (ms: number): OwnedObject =>
    pod({ busy: undefined as never, startedAt: ago(ms) }, { registration: undefined as never });
  const step = (job: OwnerWorkflow, more: Partial<RunnerWorkflow> = {}): RunnerWorkflow =>
    runnerWorkflow({ phase: 'Busy', job: { workflowId: 'job-a', ...job }, ...more });
  const hung = (
    listed: Partial<ObservedRegistration> = {},
    more: Partial<RunnerWorkflow> = {},
  ): RunnerWorkflow =>
    runnerWorkflow({ registration: ghost({ hasRunner: true, hasPod: true, ...listed }), ...more });
  const lost = (phase: RunnerPhase, more: Partial<RunnerWorkflow> = {}): RunnerWorkflow =>
    runnerWorkflow({ phase, pods: [], ...more });
  test.each<[what: string, it: RunnerWorkflow, expected: object]>([
    ['with its pod and a worker', runnerWorkflow(), FINE],
    [
      'younger than 30 s',
      lost('Idle', { ...away, startedAtMs: NOW - 30 * SECOND + 1 }),
      skips('too_young'),
    ],
    [
      'whose pod is on hold',
      runnerWorkflow({ ...away, pods: [pod({ ended: true }, { onHold: true })] }),
      skips('on_hold'),
    ],

    ['without a worker while its pod runs', runnerWorkflow(away), skips('no_worker')],
    [
      '… while its job runs',
      runnerWorkflow({ ...away, pods: [busyFor(24 * HOUR)] }),
      skips('no_worker'),
    ],
    [
      '… when its job’s timeout is over',
      runnerWorkflow({ ...away, pods: [busyFor(24 * HOUR + 1)] }),
      finds('stuck_runner', '24h0m0s, the most that it may', 'no worker polls'),
    ],
    [
      '… that is idle for longer than a job may run: it may just have taken one',
      runnerWorkflow({ ...away, pods: [pod({ readinessChangedAt: ago(48 * HOUR) })] }),
      skips('no_worker'),
    ],
    [
      '… and does not report whether it is busy',
      runnerWorkflow({
        ...away,
        pods: [pod({ online: undefined as never, busy: undefined as never })],
      }),
      skips('no_worker'),
    ],
    [
      '… and its job timeout is unknown',
      runnerWorkflow({
        ...away,
        pods: [
          object({
            kind: 'pod',
            pod: { ...view, busy: true, readinessChangedAt: ago(480 * HOUR) },
            registration: { name: 'w' },
          }),
        ],
      }),
      skips('no_worker'),
    ],
    [
      '… one of two',
      runnerWorkflow({ ...away, pods: [busyFor(48 * HOUR), pod()] }),
      skips('no_worker'),
    ],
    [
      '… a plain command, while it may run',
      runnerWorkflow({ ...away, pods: [command(24 * HOUR)] }),
      skips('no_worker'),
    ],
    [
      '… and when its timeout is over',
      runnerWorkflow({ ...away, pods: [command(24 * HOUR + 1)] }),
      finds('stuck_runner', '24h0m0s, the most that it may'),
    ],
    [
      'whose job’s timeout is over, with a worker: the workflow handles it',
      runnerWorkflow({ pods: [busyFor(48 * HOUR)] }),
      FINE,
    ],

    [
      'that the CI server lists as offline, while its pod is online and idle',
      hung(),
      finds(
        'unresponsive_runner',
        '^the CI server shows it offline, while its pod is online and idle$',
      ),
    ],
    ['… and busy: never', hung({ busy: true }), FINE],
    ['… and online', hung({ online: true }), FINE],
    ['… and that the CI server does not list', runnerWorkflow(), FINE],
    ['… while its pod is busy', hung({}, { pods: [pod({ busy: true })] }), FINE],
    [
      '… while its pod does not report whether it is busy',
      hung({}, { pods: [pod({ busy: undefined as never })] }),
      FINE,
    ],
    ['… while its pod starts', hung({}, { pods: [pod({ online: false })] }), FINE],
    [
      '… while its pod is being evicted',
      hung({}, { pods: [pod({ disruptionReason: 'EvictionByEvictionAPI' })] }),
      FINE,
    ],
    ['… while its pod is being deleted', hung({}, { pods: [pod({ terminating: true })] }), FINE],
    [
      '… while its pod is on hold',
      hung({}, { pods: [pod({}, { onHold: true })] }),
      skips('on_hold'),
    ],
    ['… while it is draining', hung({}, { phase: 'Draining' }), FINE],
    ['… without a worker, which would have to replace it', hung({}, away), skips('no_worker')],
    ['… younger than 30 s', hung({}, { startedAtMs: NOW - 30 * SECOND + 1 }), skips('too_young')],
    ['… one of two', hung({}, { pods: [pod(), pod()] }), FINE],

    ['a step whose job runs', runnerWorkflow({ job: { workflowId: 'job-a', ...RUNNING } }), FINE],
    [
      'a step whose job was terminated',
      step(TERMINATED),
      finds('orphaned_step', ORPHANED_STEP_MESSAGE, 'its job job-a was terminated by me: because'),
    ],
    [
      '… and which has no pod yet',
      step(TERMINATED, { phase: 'Provisioning', pods: [] }),
      finds('orphaned_step'),
    ],
    [
      '… less than 30 s ago',
      step({ ...TERMINATED, closedAtMs: NOW - 30 * SECOND + 1 }),
      skips('too_young'),
    ],
    [
      '… and which is already draining',
      step(TERMINATED, { phase: 'TearingDown', pods: [] }),
      skips('in_transition'),
    ],
    [
      '… and whose pod is on hold',
      step(TERMINATED, { pods: [pod({}, { onHold: true })] }),
      skips('on_hold'),
    ],
    [
      '… without a worker, which would process the signal much later',
      step(TERMINATED, away),
      skips('no_worker'),
    ],
    [
      '… without a worker and without a pod',
      step(TERMINATED, { ...away, phase: 'Busy', pods: [] }),
      finds('stuck_runner'),
    ],

    ['not provisioned yet', lost('Provisioning'), skips('in_transition')],
    [
      '… and without a worker: the pod may still be created',
      lost('Requested', away),
      skips('in_transition'),
    ],
    [
      'whose pod has ended, with a worker',
      runnerWorkflow({ pods: [pod({ ended: true })] }),
      skips('in_transition'),
    ],
    ['whose pod was deleted by its tear-down', lost('TearingDown'), skips('in_transition')],
    ['that resumes its work', lost('Busy', { ...away, willResume: true }), skips('will_resume')],

    [
      'that lost its pod and is paused in Temporal: it is neither signaled nor terminated',
      lost('Busy', { ...away, paused: true }),
      skips('paused'),
    ],

    [
      'that lost its pod, and has a worker',
      lost('Busy'),
      finds('stuck_runner', 'it is Busy, its pod is gone$'),
    ],
    [
      'that lost its pod, without a worker',
      lost('Idle', away),
      finds('stuck_runner', 'its pod is gone, and no worker polls its task queue'),
    ],
    [
      'whose pod has ended, without a worker: the end of the pod can still be read',
      runnerWorkflow({ ...away, phase: 'Provisioning', pods: [pod({ ended: true })] }),
      skips('no_worker'),
    ],
    [
      'that was torn down, without a worker: its verdict exists',
      lost('TearingDown', away),
      skips('no_worker'),
    ],
  ])('%s', (_what, it, expected) => {
    expect(assessRunner(it, NOW, SPEC)).toEqual(expect.objectContaining(expected));
  });

  test('a new pod that has not yet reported whether it is busy counts as idle', () => {
    const { busy: _, ...new_ } = view;
    expect(
      assessRunner(
        runnerWorkflow({
          ...away,
          pods: [
            object({
              kind: 'pod',
              pod: { ...new_, assumedBusyFrom: ago(-1), readinessChangedAt: ago(48 * HOUR) },
              jobTimeoutCapMs: HOUR,
              registration: { name: 'w-0123456789' },
            }),
          ],
        }),
        NOW,
        SPEC,
      ),
    ).toEqual(skips('no_worker'));
  });
});

describe('a stuck runner', () => {
  const mark = (unpolledSince?: string): SweepMark => ({
    kind: 'stuck_runner',
    key: 'w r',
    since: ago(HOUR),
    ...omitUndefined({ unpolledSince }),
  });
  const waits = { taskPendingSinceMs: NOW - MINUTE };
  const now = new Date(NOW).toISOString();
  const [young, old] = [ago(6 * HOUR - 1), ago(6 * HOUR)];
  test.each<
    [
      what: string,
      facts: Parameters<typeof stuckRunnerStep>[0],
      before: SweepMark | undefined,
      expected: ReturnType<typeof stuckRunnerStep>,
    ]
  >([
    [
      'found for the first time, without a worker',
      { hasPoller: false, ...waits },
      undefined,
      { kind: 'mark', unpolledSince: now },
    ],
    ['found for the first time, with a worker', { hasPoller: true }, undefined, { kind: 'mark' }],
    [
      'found again: signaled',
      { hasPoller: false },
      mark(young),
      { kind: 'signal', unpolledSince: young },
    ],
    [
      '… and the signal is already pending',
      { hasPoller: false, ...waits },
      mark(young),
      { kind: 'wait', unpolledSince: young },
    ],
    [
      'without a worker for 6 h, and without progress',
      { hasPoller: false, ...waits },
      mark(old),
      { kind: 'terminate', unpolledSince: old },
    ],
    [
      '… and with progress',
      { hasPoller: false },
      mark(old),
      { kind: 'signal', unpolledSince: old },
    ],
    [
      'the worker stopped after the mark: the time counts from now',
      { hasPoller: false, ...waits },
      mark(),
      { kind: 'wait', unpolledSince: now },
    ],
    [
      'with a worker again: the time is reset',
      { hasPoller: true, ...waits },
      mark(old),
      { kind: 'wait' },
    ],
    [
      'with a worker: signaled, and never terminated',
      { hasPoller: true },
      mark(),
      { kind: 'signal' },
    ],
  ])('%s', (_what, facts, before, expected) => {
    expect(stuckRunnerStep(facts, before, NOW, SPEC)).toEqual(expected);
  });
});
