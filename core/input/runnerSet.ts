/** Validation of the `runnerSet` workflow's input: from what people write to a {@link SetSpec} with every default filled in. */
import { z } from 'zod';
import { parseDuration } from '../domain/duration.ts';
import { parseRunnerInput, type ParsedRunner } from './runner.ts';
import { duration, toErrors, type InputError, type Parsed } from './fields.ts';
import type { RunnerSetInput, SetScale } from '../contract/index.ts';
import { MAX_SET_NAME, runnerWorkflowId } from '../domain/setRunnerNames.ts';
import { needsSlots } from '../domain/slots.ts';
import { toBounds, type ScaleBounds } from '../domain/scale.ts';
import type { TimeoutPolicy } from './timeoutPolicy.ts';
import type { Scope } from '../domain/ciServer.ts';

/** A validated set. All durations in ms. */
export interface SetSpec {
  readonly name: string;
  readonly template: RunnerSetInput['template'];
  /** Hash of the template. */
  readonly generation: string;
  /** Absent: plain commands that no CI server knows. */
  readonly scope?: Scope;
  readonly credential: string;
  readonly labels: readonly string[];
  readonly ephemeral: boolean;
  /** Its runners have volumes that outlive them: each runner has a slot. */
  readonly slots: boolean;
  readonly bounds: ScaleBounds;
  readonly schedules: readonly SetScheduleSpec[];
  readonly scaleDownDelayMs: number;
  readonly recreationGuardMs: number;
  readonly maxSurge: number;
  /** 0: never. */
  readonly queueCheckMs: number;
  readonly relistMs: number;
  readonly firstRetryMs: number;
  readonly longestRetryMs: number;
  readonly guardLookMs: number;
}

export interface SetScheduleSpec {
  readonly cron: string;
  readonly timeZone: string;
  readonly durationMs: number;
  readonly bounds: ScaleBounds;
}

/** Production defaults; a table test pins every one of them. */
export const SET_DEFAULTS = {
  scaleDownDelay: '10m',
  recreationGuard: '10m',
  maxSurge: 1,
  queueCheck: '5m',
  timeZone: 'UTC',
  intervals: { relist: '5m', firstRetry: '15s', longestRetry: '10m', guardLook: '30s' },
} as const;

/** What continue-as-new carries over has room for so many. A larger fleet is several sets. */
export const MAX_RUNNERS = 5_000;

const durationOrNone = z.string().refine((text) => parseDuration(text) !== undefined, 'is not a duration; write for example "30s", "10m" or "1h30m"');
const size = z.number().int('must be a whole number').min(0, 'must be 0 or more').max(MAX_RUNNERS, `must be at most ${MAX_RUNNERS}: make a larger fleet of several sets`);
const scaleFields = { replicas: size.optional(), minIdle: size.optional(), max: size.optional() };

const schema = z.strictObject({
  name: z
    .string('is missing')
    .max(MAX_SET_NAME, `must be at most ${MAX_SET_NAME} characters: suffixes are appended, and GitHub allows 64`)
    .regex(/^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$/, 'must consist of letters, digits, ".", "_" and "-", and begin and end with a letter or a digit'),
  ...scaleFields,
  template: z.record(z.string(), z.unknown(), 'is missing: what each runner is started with'),
  schedules: z
    .array(z.strictObject({ ...scaleFields, cron: z.string().min(1).max(200), timeZone: z.string().min(1).max(100).optional(), duration }))
    .max(50, 'must be at most 50')
    .optional(),
  scaleDownDelay: durationOrNone.optional(),
  recreationGuard: durationOrNone.optional(),
  rollout: z.strictObject({ maxSurge: z.number().int('must be a whole number').min(1, 'must be 1 or more').max(MAX_RUNNERS).optional() }).optional(),
  holds: z.array(z.string().min(1).max(200)).max(1_000).optional(),
  paused: z.boolean().optional(),
  queueCheck: durationOrNone.optional(),
  intervals: z.strictObject({ relist: duration, firstRetry: duration, longestRetry: duration, guardLook: duration }).partial().optional(),
});

/** Fails with what is wrong with a schedule, if something is; knowing cron and time zones is the activity's part. */
export type CheckSchedule = (schedule: { readonly cron: string; readonly timeZone: string }) => string | undefined;
export interface SetAdmission {
  readonly hash: (template: unknown) => string;
  readonly checkSchedule: CheckSchedule;
  readonly policy?: TimeoutPolicy;
}

/** Validates what people hand in. Every error is reported at once; those of the template under `template`. */
export function parseRunnerSetInput(raw: unknown, { hash, checkSchedule, policy }: SetAdmission): Parsed<SetSpec & { readonly runner: ParsedRunner }> {
  const parsed = schema.safeParse(raw);
  if (!parsed.success) return { ok: false, errors: parsed.error.issues.flatMap(toErrors) };
  const input = parsed.data as RunnerSetInput;
  const errors = [...scaleErrors(input, ''), ...scheduleErrors(input, checkSchedule), ...templateErrors(input)];
  const runner = parseRunnerInput({ ...input.template, set: input.name }, runnerWorkflowId(input.name, '0'.repeat(10)), policy);
  if (!runner.ok) errors.push(...runner.errors.map(({ field, message }) => ({ field: `template.${field}`, message })));
  if (!runner.ok || errors.length > 0) return { ok: false, errors };
  return { ok: true, spec: { ...toSpec(input, runner.spec, hash(input.template)), runner: runner.spec } };
}

function scaleErrors({ replicas, minIdle, max }: SetScale, at: string): InputError[] {
  if (replicas !== undefined) {
    const also = [...(minIdle === undefined ? [] : [`${at}minIdle`]), ...(max === undefined ? [] : [`${at}max`])];
    return also.length === 0 ? [] : [{ field: also.join(', '), message: 'and replicas exclude each other: give replicas, or max with minIdle' }];
  }
  if (max === undefined) return [{ field: minIdle === undefined ? `${at}replicas` : `${at}max`, message: 'is missing: give replicas for a fixed number, or max and minIdle for one that follows demand' }];
  return (minIdle ?? 0) > max ? [{ field: `${at}minIdle`, message: `is more than max (${max})` }] : [];
}

function scheduleErrors({ schedules = [] }: RunnerSetInput, check: CheckSchedule): InputError[] {
  return schedules.flatMap((schedule, index) => {
    const wrong = check({ cron: schedule.cron, timeZone: schedule.timeZone ?? SET_DEFAULTS.timeZone });
    return [...scaleErrors(schedule, `schedules.${index}.`), ...(wrong === undefined ? [] : [{ field: `schedules.${index}.cron`, message: wrong }])];
  });
}

function templateErrors({ template }: RunnerSetInput): InputError[] {
  return ['name', 'set'].filter((field) => field in template).map((field) => ({ field: `template.${field}`, message: 'is given by the set; remove it' }));
}

const ms = (text: string): number => parseDuration(text) ?? Number.NaN;

function toSpec(input: RunnerSetInput, runner: ParsedRunner, generation: string): SetSpec {
  const { scaleDownDelay, recreationGuard, queueCheck } = { ...SET_DEFAULTS, ...input };
  const intervals = { ...SET_DEFAULTS.intervals, ...input.intervals };
  return {
    name: input.name,
    template: input.template,
    generation,
    ...(runner.scope === undefined ? {} : { scope: runner.scope }),
    credential: runner.credential,
    labels: runner.labels,
    ephemeral: runner.ephemeral,
    slots: needsSlots(input.template),
    bounds: toBounds(input),
    schedules: (input.schedules ?? []).map(({ cron, timeZone = SET_DEFAULTS.timeZone, duration: lasts, ...scale }) => ({ cron, timeZone, durationMs: ms(lasts), bounds: toBounds(scale) })),
    scaleDownDelayMs: ms(scaleDownDelay),
    recreationGuardMs: ms(recreationGuard),
    maxSurge: input.rollout?.maxSurge ?? SET_DEFAULTS.maxSurge,
    queueCheckMs: ms(queueCheck),
    relistMs: ms(intervals.relist),
    firstRetryMs: ms(intervals.firstRetry),
    longestRetryMs: ms(intervals.longestRetry),
    guardLookMs: ms(intervals.guardLook),
  };
}
