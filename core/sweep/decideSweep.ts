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
import { judgePod } from './assessPod.ts';
import { judgeRegistration } from './assessRegistration.ts';
import { judgeResource } from './assessResource.ts';
import { judgeRunner } from './assessRunner.ts';
import { parseObjectMark } from './objectMark.ts';
import type { OwnedObject } from './ownedObject.ts';
import { stuckRunnerStep, type StuckRunnerStep } from './stuckRunnerStep.ts';

/** Object, and the runner workflow that it was created for. */
export interface ObjectWithOwner {
  readonly object: OwnedObject;
  readonly life: OwnerWorkflow;
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
      readonly subject: 'life';
      readonly life: RunnerWorkflow;
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
 * Number of pods from which a sweep without force does not condemn more than half of them at once.
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
  const judged = <T>(
    subject: T,
    judgement: Assessment,
    finding: (as: FindingKind, reason: string) => Finding,
    otherwise: (subject: T) => void = () => undefined,
  ): void => {
    if (judgement.kind === 'condemned')
      return void findings.push(finding(judgement.as, judgement.reason));
    if (judgement.kind === 'skip') count(judgement.why);
    otherwise(subject);
  };
  const seenObject = (object: OwnedObject, judgement: Assessment): void =>
    judged(
      object,
      judgement,
      (as, reason) => ({
        as,
        reason,
        subject: 'object',
        object,
        step: objectStep(object, as, nowMs, spec),
      }),
      () => (object.mark !== undefined && !object.onHold ? unmark.push(object) : undefined),
    );

  for (const { object, life } of found.pods)
    seenObject(object, judgePod(object, life, nowMs, spec));
  for (const { object, life, used } of found.resources)
    seenObject(object, judgeResource(object, life, used, nowMs, spec));
  for (const { object, used } of found.jobObjects)
    seenObject(object, assessJobObject(object, used, nowMs, spec));
  for (const registration of found.registrations) {
    judged(registration, judgeRegistration(registration), (as, reason) => {
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
  for (const life of found.runners) {
    if (nowMs - life.startedAtMs > spec.maxRunnerAgeMs) count('long_running');
    const judgement = judgeRunner(life, nowMs, spec);
    const isOfMany =
      judgement.kind === 'condemned' &&
      judgement.as === 'unresponsive_runner' &&
      offline.has(scopeOf(life));
    judged(life, isOfMany ? skip('mass_offline') : judgement, (as, reason) => {
      if (as === 'unresponsive_runner')
        return hungFinding(
          life,
          reason,
          markOf.get(`${as} ${life.registration?.name}`),
          nowMs,
          spec,
        );
      const earlier = markOf.get(`${as} ${runnerKey(life)}`);
      const mark = { key: runnerKey(life), since: earlier?.since ?? new Date(nowMs).toISOString() };
      if (as === 'orphaned_step')
        return {
          as,
          reason,
          subject: 'life',
          life,
          step: stepAfter(earlier && Date.parse(earlier.since), spec.minAgeMs, nowMs),
          mark: { kind: as, ...mark },
        };
      const { kind: step, ...unpolled } = stuckRunnerStep(life, earlier, nowMs, spec);
      return {
        as,
        reason,
        subject: 'life',
        life,
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
function hungFinding(
  life: RunnerWorkflow,
  reason: string,
  earlier: SweepMark | undefined,
  nowMs: number,
  { unresponsiveAfterMs }: SweepSpec,
): Finding {
  const mark: SweepMark = earlier ?? {
    kind: 'unresponsive_runner',
    key: life.registration?.name ?? '',
    since: new Date(nowMs).toISOString(),
  };
  const step = stepAfter(earlier && Date.parse(earlier.since), unresponsiveAfterMs, nowMs);
  return { as: 'unresponsive_runner', reason, subject: 'life', life, step, mark };
}

function abortReason(
  { pods, locationKnown }: SweepInventory,
  findings: readonly Finding[],
): string | undefined {
  if (!locationKnown && findings.length > 0)
    return `Temporal knows no runner of this installation, running or ended, and ${findings.length} of its pods, Secrets, claims and registrations are here: is this the right server and namespace? If so, force the sweep`;
  const condemned = findings.filter(
    ({ as }) => as === 'orphaned_pod' || as === 'expired_pod',
  ).length;
  if (pods.length < PODS_THRESHOLD || condemned * 2 <= pods.length) return undefined;
  return `it would condemn ${condemned} of ${pods.length} pods, more than half; find the reason, and if it is right, force the sweep`;
}

/** Returns the {@link SweepMark.key} of a registration. */
function registrationKey({ scope, id }: ObservedRegistration): string {
  return `${scope.kind} ${scope.name}#${id}`;
}

function runnerKey({ workflowId, runId }: RunnerWorkflow): string {
  return `${workflowId} ${runId}`;
}
