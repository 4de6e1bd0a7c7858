/** Parses the input of the `runnerSet` workflow (RunnerSetInput) into a {@link SetSpec}. */
import {
  SET_DELAYS,
  SET_INTERVALS,
  type RunnerSetInput,
  type SetCapacity,
  type SetLimits,
  type SetPriority,
} from '../contract/index.ts';
import { omitUndefined } from '../domain/omitUndefined.ts';
import type { RunnerGroupRef, Scope } from '../domain/ciServer.ts';
import type { CiServerKind } from '../domain/ciServerKind.ts';
import type { CiJobLimits } from '../domain/ciServerTraits.ts';
import { toMilliseconds, type Milliseconds } from '../domain/duration.ts';
import { toBounds, type ScaleBounds } from '../domain/scale.ts';
import { runnerWorkflowId } from '../domain/setRunnerNames.ts';
import { needsVolumeSlots } from '../domain/volumeSlots.ts';
import { isObject } from '../domain/isObject.ts';
import { parseAndCheck, type Parsed } from './fields.ts';
import { parseRunnerInput, type RunnerValidationContext, type RunnerSpec } from './runner.ts';
import { setErrors, setErrorsWithRunner, type ScheduleValidator } from './runnerSetChecks.ts';
import { setSchema, DEFAULT_TIME_ZONE } from './runnerSetSchema.ts';

/** A validated set with its defaults filled in. A delay of 0 means none. */
export interface SetSpec
  extends Milliseconds<typeof SET_DELAYS>, Milliseconds<typeof SET_INTERVALS> {
  readonly name: string;
  readonly template: RunnerSetInput['template'];
  /** Hash of the template. */
  readonly templateHash: string;
  /** Kind of CI server. Absent, like the scope, for plain commands without a CI server. */
  readonly ciServer?: CiServerKind;
  readonly scope?: Scope;
  readonly credential: string;
  readonly labels: readonly string[];
  readonly group: RunnerGroupRef;
  /** Whether the set also takes jobs without labels. @default false */
  readonly groupJobs?: true;
  /**
   * Limits of the CI server for jobs, added at admission.
   * @default 24 hours queued, 5 days running
   */
  readonly jobLimits?: CiJobLimits;
  readonly ephemeral: boolean;
  /** Scale set from which the set takes its demand. Absent: job events report it. */
  readonly scaleSet?: { readonly name: string; readonly adopt: boolean };
  /** Whether its runners have volumes that outlive them. Each runner then has a slot. */
  readonly slots: boolean;
  readonly bounds: ScaleBounds;
  readonly schedules: readonly SetScheduleSpec[];
  readonly capacity: SetCapacity;
  readonly maxSurge: number;
  readonly limits: SetLimits;
  readonly priority: SetPriority;
}

/** Validated schedule of a set. */
export interface SetScheduleSpec {
  readonly cron: string;
  readonly timeZone: string;
  readonly durationMs: number;
  readonly bounds: ScaleBounds;
}

/** Dependencies of the validation of a set. */
export interface SetValidationContext {
  readonly hash: (template: unknown) => string;
  readonly checkSchedule: ScheduleValidator;
  /** Timeout policy, as in the validation of a runner. @default none */
  readonly policy?: RunnerValidationContext['policy'];
}

/**
 * Parses the input of a set. Reports all errors at once, those of the template under `template`.
 */
export function parseRunnerSetInput(
  raw: unknown,
  { hash, checkSchedule, policy }: SetValidationContext,
): Parsed<SetSpec & { readonly runner: RunnerSpec }> {
  const parsed = parseAndCheck(setSchema, raw, (each: RunnerSetInput) =>
    setErrors(each, checkSchedule),
  );
  const template = isObject(raw) ? raw['template'] : undefined;
  const name = parsed.ok ? parsed.spec.name : 'set';
  const runner = parseRunnerInput(
    { ...(isObject(template) ? template : {}), set: name },
    { workflowId: runnerWorkflowId(name, '0'.repeat(10)), policy },
  );
  const errors = [
    ...(parsed.ok ? [] : parsed.errors),
    ...(runner.ok || !isObject(template)
      ? []
      : runner.errors.map((error) => ({ ...error, field: `template.${error.field}` }))),
    // Only a template that is valid is known to hold no object within itself.
    ...(parsed.ok && runner.ok ? setErrorsWithRunner(parsed.spec, runner.spec) : []),
  ];
  if (!parsed.ok || !runner.ok || errors.length > 0) return { ok: false, errors };
  const input: RunnerSetInput = parsed.spec;
  return {
    ok: true,
    spec: { ...toSpec(input, runner.spec, hash(input.template)), runner: runner.spec },
  };
}

function toSchedules({ schedules = [], replaceAhead }: RunnerSetInput): SetScheduleSpec[] {
  return schedules.map(({ cron, timeZone = DEFAULT_TIME_ZONE, duration: lasts, ...scale }) => ({
    cron,
    timeZone,
    ...toMilliseconds({ duration: lasts }),
    bounds: toBounds(scale, replaceAhead),
  }));
}

function toSpec(
  input: RunnerSetInput,
  { ciServer, scope, credential, labels, ephemeral, runnerGroup, scaleSet }: RunnerSpec,
  templateHash: string,
): SetSpec {
  const {
    name,
    template,
    replaceAhead,
    scaleDownDelay,
    minReady,
    recreationGuard,
    queueCheck,
    limits = {},
    priority = 'normal',
  } = input;
  return {
    name,
    template,
    templateHash,
    ...omitUndefined({
      ciServer,
      scope,
      scaleSet,
      groupJobs: input.groupJobs === true ? (true as const) : undefined,
    }),
    credential,
    group: runnerGroup,
    labels,
    ephemeral,
    slots: needsVolumeSlots(template),
    bounds: toBounds(input, replaceAhead),
    schedules: toSchedules(input),
    capacity: input.capacity ?? 'static',
    maxSurge: input.rollout?.maxSurge ?? 1,
    limits,
    priority,
    ...toMilliseconds({
      ...SET_DELAYS,
      ...omitUndefined({ scaleDownDelay, minReady, recreationGuard, queueCheck }),
    }),
    ...toMilliseconds({ ...SET_INTERVALS, ...input.intervals }),
  };
}
