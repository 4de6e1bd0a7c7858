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
  const markOf = new Map(marks.map((mark) => [`${mark.kind} ${mark.key}`, mark]));
  const record = <T>(
    subject: T,
    assessment: Assessment,
    finding: (as: FindingKind, reason: string) => Finding,
    otherwise: (subject: T) => void = () => undefined,
  ): void => {
    if (assessment.kind === 'finding')
      return void findings.push(finding(assessment.as, assessment.reason));
    if (assessment.kind === 'skip') count(assessment.why);
    otherwise(subject);
  };
  const recordObject = (object: OwnedObject, assessment: Assessment): void =>
    record(
      object,
      assessment,
      (as, reason) => ({
        as,
        reason,
        subject: 'object',
        object,
        step: objectStep(object, as, nowMs, spec),
      }),
      () => (object.mark !== undefined && !object.onHold ? unmark.push(object) : undefined),
    );

  for (const { object, owner } of found.pods)
    recordObject(object, assessPod(object, owner, nowMs, spec));
  for (const { object, owner, used } of found.resources)
    recordObject(object, assessResource(object, owner, used, nowMs, spec));
  for (const { object, used } of found.jobObjects)
    recordObject(object, assessJobObject(object, used, nowMs, spec));
  for (const registration of found.registrations) {
    record(registration, assessRegistration(registration), (as, reason) => {
      const earlier = markOf.get(`${as} ${registrationKey(registration)}`);
      const mark = earlier ?? {
        kind: 'orphaned_registration',
        key: registrationKey(registration),
        since: new Date(nowMs).toISOString(),
      };
      // A list may be older than the objects in it.
      const waitMs = Math.max(spec.listMaxAgeMs, spec.minAgeMs);
      const step = stepAfter(earlier && Date.parse(earlier.since), waitMs, nowMs);
      return { as, reason, subject: 'registration', registration, step, mark };
    });
  }
  const offline = massOfflineScopes(found.runners);
  for (const runner of found.runners) {
    if (nowMs - runner.startedAtMs > spec.maxRunnerAgeMs) count('long_running');
    const assessment = assessRunner(runner, nowMs, spec);
    const isOfMany =
      assessment.kind === 'finding' &&
      assessment.as === 'unresponsive_runner' &&
      offline.has(scopeOf(runner));
    record(runner, isOfMany ? skip('mass_offline') : assessment, (as, reason) => {
      if (as === 'unresponsive_runner')
        return unresponsiveFinding(
          runner,
          reason,
          markOf.get(`${as} ${runner.registration?.name}`),
          nowMs,
          spec,
        );
      const earlier = markOf.get(`${as} ${runnerKey(runner)}`);
      const mark = {
        key: runnerKey(runner),
        since: earlier?.since ?? new Date(nowMs).toISOString(),
      };
      if (as === 'orphaned_step')
        return {
          as,
          reason,
          subject: 'runner',
          runner,
          step: stepAfter(earlier && Date.parse(earlier.since), spec.minAgeMs, nowMs),
          mark: { kind: as, ...mark },
        };
      const { kind: step, ...unpolled } = stuckRunnerStep(runner, earlier, nowMs, spec);
      return {
        as,
        reason,
        subject: 'runner',
        runner,
        step,
        mark: { kind: 'stuck_runner', ...mark, ...unpolled },
      };
    });
  }
  return {
    findings,
    unmark,
    skipped,
    ...omitUndefined({ abortReason: spec.force ? undefined : abortReason(found, findings) }),
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
