/**
 * Decides what a sweep does: combines the assessments, the marks of the previous sweep, and the
 * rules about the whole inventory. Pure.
 */
import type { SweepMark, SweepSkip, FindingKind } from '../contract/index.ts';
import { omitUndefined } from '../domain/omitUndefined.ts';
import type { SweepSpec } from '../input/sweep.ts';
import {
  skip,
  type Assessment,
  type OwnerWorkflow,
  type RunnerWorkflow,
  type ObservedRegistration,
} from './facts.ts';
import { scopeOf, massOfflineScopes } from './unresponsiveRunner.ts';
import { assessJobObject } from './assessJobObject.ts';
import { assessPod } from './assessPod.ts';
import { assessRegistration } from './assessRegistration.ts';
import { assessResource } from './assessResource.ts';
import { assessRunner } from './assessRunner.ts';
import { parseObjectMark } from './objectMark.ts';
import type { OwnedObject } from './ownedObject.ts';
import { stuckRunnerStep, type StuckRunnerStep } from './stuckRunnerStep.ts';

/** Object, and the runner workflow that it was created for. */
export interface ObjectWithOwner {
  readonly object: OwnedObject;
  readonly owner: OwnerWorkflow;
  /** Whether a pod of that workflow exists. Only for a Secret or claim. */
  readonly used: boolean;
}

/** Object that a job has created in addition to its runner's pod. */
export interface JobObjectUse {
  readonly object: OwnedObject;
  /** Whether the pod of its runner exists. */
  readonly used: boolean;
}

/** Everything that a sweep has observed in one location. */
export interface SweepInventory {
  readonly pods: readonly ObjectWithOwner[];
  readonly resources: readonly ObjectWithOwner[];
  /** Objects of jobs that have no owner. */
  readonly jobObjects: readonly JobObjectUse[];
  readonly registrations: readonly ObservedRegistration[];
  readonly runners: readonly RunnerWorkflow[];
  /** Whether Temporal has a record of any runner workflow in this location, running or closed. */
  readonly locationKnown: boolean;
}

/** One problem and its next step. */
export type Finding = { readonly as: FindingKind; readonly reason: string } & (
  | {
      readonly subject: 'object';
      readonly object: OwnedObject;
      readonly step: 'mark' | 'wait' | 'repair';
    }
  | {
      readonly subject: 'registration';
      readonly registration: ObservedRegistration;
      readonly step: 'mark' | 'wait' | 'repair';
      readonly mark: SweepMark;
    }
  | {
      readonly subject: 'runner';
      readonly runner: RunnerWorkflow;
      readonly step: StuckRunnerStep['kind'] | 'repair';
      readonly mark: SweepMark;
    }
);

/** Findings and next steps of a sweep. */
export interface SweepPlan {
  /** Reason why nothing may be changed. Absent if the plan can be executed. */
  readonly abortReason?: string;
  readonly findings: readonly Finding[];
  /** Objects that an earlier sweep marked and that are not findings anymore. */
  readonly unmark: readonly OwnedObject[];
  /** Numbers of objects left alone, by reason. */
  readonly skipped: Partial<Record<SweepSkip, number>>;
}

/**
 * Number of pods from which a sweep without force does not repair more than half of them at once.
 */
const PODS_THRESHOLD = 10;

/**
 * Decides the steps of a sweep.
 * @param marks - marks of the previous sweep, for findings that cannot carry a mark themselves
 */
export function decideSweep(
  found: SweepInventory,
  marks: readonly SweepMark[],
  nowMs: number,
  spec: SweepSpec,
): SweepPlan {
  const skipped: Partial<Record<SweepSkip, number>> = {};
  const count = (reason: SweepSkip): void => {
    skipped[reason] = (skipped[reason] ?? 0) + 1;
  };
  const findings: Finding[] = [];
  const unmark: OwnedObject[] = [];
  const markOf: Marks = new Map(marks.map((mark) => [`${mark.kind} ${mark.key}`, mark]));
  /** Records an assessment. Returns whether it is a finding. */
  const record = (
    assessment: Assessment,
    finding: (as: FindingKind, reason: string) => Finding,
  ): boolean => {
    if (assessment.kind === 'finding') findings.push(finding(assessment.as, assessment.reason));
    if (assessment.kind === 'skip') count(assessment.why);
    return assessment.kind === 'finding';
  };
  for (const { object, assessment } of assessObjects(found, nowMs, spec)) {
    const isFinding = record(assessment, (as, reason) => {
      const step = objectStep(object, as, nowMs, spec);
      return { as, reason, subject: 'object', object, step };
    });
    if (!isFinding && object.mark !== undefined && !object.onHold) unmark.push(object);
  }
  for (const registration of found.registrations)
    record(assessRegistration(registration), (as, reason) =>
      registrationFinding(registration, as, reason, markOf, nowMs, spec),
    );
  for (const { runner, assessment } of assessRunners(found.runners, nowMs, spec)) {
    if (nowMs - runner.startedAtMs > spec.maxRunnerAgeMs) count('long_running');
    record(assessment, (as, reason) => runnerFinding(runner, as, reason, markOf, nowMs, spec));
  }
  return {
    findings,
    unmark,
    skipped,
    ...omitUndefined({ abortReason: spec.force ? undefined : abortReason(found, findings) }),
  };
}

/** Marks of the previous sweep, by kind and key. */
type Marks = ReadonlyMap<string, SweepMark>;

function assessObjects(
  { pods, resources, jobObjects }: SweepInventory,
  nowMs: number,
  spec: SweepSpec,
): { readonly object: OwnedObject; readonly assessment: Assessment }[] {
  return [
    ...pods.map(({ object, owner }) => ({
      object,
      assessment: assessPod(object, owner, nowMs, spec),
    })),
    ...resources.map(({ object, owner, used }) => ({
      object,
      assessment: assessResource(object, owner, used, nowMs, spec),
    })),
    ...jobObjects.map(({ object, used }) => ({
      object,
      assessment: assessJobObject(object, used, nowMs, spec),
    })),
  ];
}

/** Assesses the runners. If many of a scope are offline, the CI server is the reason. */
function assessRunners(
  runners: readonly RunnerWorkflow[],
  nowMs: number,
  spec: SweepSpec,
): { readonly runner: RunnerWorkflow; readonly assessment: Assessment }[] {
  const offline = massOfflineScopes(runners);
  return runners.map((runner) => {
    const assessment = assessRunner(runner, nowMs, spec);
    const isOfMany =
      assessment.kind === 'finding' &&
      assessment.as === 'unresponsive_runner' &&
      offline.has(scopeOf(runner));
    return { runner, assessment: isOfMany ? skip('mass_offline') : assessment };
  });
}

function registrationFinding(
  registration: ObservedRegistration,
  as: FindingKind,
  reason: string,
  marks: Marks,
  nowMs: number,
  spec: SweepSpec,
): Finding {
  const key = registrationKey(registration);
  const earlier = marks.get(`${as} ${key}`);
  const mark = earlier ?? {
    kind: 'orphaned_registration',
    key,
    since: new Date(nowMs).toISOString(),
  };
  // A list may be older than the objects in it.
  const waitMs = Math.max(spec.listMaxAgeMs, spec.minAgeMs);
  const step = stepAfter(earlier && Date.parse(earlier.since), waitMs, nowMs);
  return { as, reason, subject: 'registration', registration, step, mark };
}

function runnerFinding(
  runner: RunnerWorkflow,
  as: FindingKind,
  reason: string,
  marks: Marks,
  nowMs: number,
  spec: SweepSpec,
): Finding {
  if (as === 'unresponsive_runner') {
    const earlier = marks.get(`${as} ${runner.registration?.name}`);
    return unresponsiveFinding(runner, reason, earlier, nowMs, spec);
  }
  const key = runnerKey(runner);
  const earlier = marks.get(`${as} ${key}`);
  const mark = { key, since: earlier?.since ?? new Date(nowMs).toISOString() };
  if (as === 'orphaned_step') {
    const step = stepAfter(earlier && Date.parse(earlier.since), spec.minAgeMs, nowMs);
    return { as, reason, subject: 'runner', runner, step, mark: { kind: as, ...mark } };
  }
  const { kind: step, ...unpolled } = stuckRunnerStep(runner, earlier, nowMs, spec);
  return {
    as,
    reason,
    subject: 'runner',
    runner,
    step,
    mark: { kind: 'stuck_runner', ...mark, ...unpolled },
  };
}

/**
 * Returns the next step for an object. A mark counts when it is `minAge` old, so two sweeps in
 * quick succession count as one.
 */
function objectStep(
  object: OwnedObject,
  kind: FindingKind,
  nowMs: number,
  { minAgeMs }: SweepSpec,
): 'mark' | 'wait' | 'repair' {
  const mark = parseObjectMark(object.mark);
  return stepAfter(mark?.kind === kind ? mark.atMs : undefined, minAgeMs, nowMs);
}

/**
 * Returns the next step for a finding.
 * @param markedAtMs - time of its mark (ms since the epoch). Absent if it is not marked
 */
function stepAfter(
  markedAtMs: number | undefined,
  waitMs: number,
  nowMs: number,
): 'mark' | 'wait' | 'repair' {
  if (markedAtMs === undefined) return 'mark';
  return markedAtMs + waitMs <= nowMs ? 'repair' : 'wait';
}

/**
 * Returns the finding of an unresponsive runner. It is repaired after it was found twice, so far
 * apart that neither an old list nor a short interruption explains both.
 */
function unresponsiveFinding(
  runner: RunnerWorkflow,
  reason: string,
  earlier: SweepMark | undefined,
  nowMs: number,
  { unresponsiveAfterMs }: SweepSpec,
): Finding {
  const mark: SweepMark = earlier ?? {
    kind: 'unresponsive_runner',
    key: runner.registration?.name ?? '',
    since: new Date(nowMs).toISOString(),
  };
  const step = stepAfter(earlier && Date.parse(earlier.since), unresponsiveAfterMs, nowMs);
  return { as: 'unresponsive_runner', reason, subject: 'runner', runner, step, mark };
}

function abortReason(
  { pods, locationKnown }: SweepInventory,
  findings: readonly Finding[],
): string | undefined {
  if (!locationKnown && findings.length > 0)
    return `Temporal knows no runner of this installation, running or ended, and ${findings.length} of its pods, Secrets, claims and registrations are here: check the server and the namespace of Temporal; if they are right, force the sweep`;
  const repairs = findings.filter(({ as }) => as === 'orphaned_pod' || as === 'expired_pod').length;
  if (pods.length < PODS_THRESHOLD || repairs * 2 <= pods.length) return undefined;
  return `it would repair ${repairs} of ${pods.length} pods, more than half; find the reason, and if the findings are right, force the sweep`;
}

/** Returns the {@link SweepMark.key} of a registration. */
function registrationKey({ scope, id }: ObservedRegistration): string {
  return `${scope.kind} ${scope.name}#${id}`;
}

function runnerKey({ workflowId, runId }: RunnerWorkflow): string {
  return `${workflowId} ${runId}`;
}
