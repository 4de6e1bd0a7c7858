/** Parses the input of the `runnerSet` workflow (RunnerSetInput) into a {@link SetSpec}. */
import { z } from 'zod';
import {
  SET_CAPACITIES,
  SET_DELAYS,
  SET_INTERVALS,
  SET_PRIORITIES,
  type InputError,
  type RunnerSetInput,
  type SetCapacity,
  type SetLimits,
  type SetPriority,
  type SetScale,
} from '../contract/index.ts';
import { omitUndefined } from '../domain/omitUndefined.ts';
import type { RunnerGroupRef, Scope } from '../domain/ciServer.ts';
import type { CiServerKind } from '../domain/ciServerKind.ts';
import type { CiJobLimits } from '../domain/ciServerTraits.ts';
import { patternError } from '../domain/filterPattern.ts';
import { toMilliseconds, type Milliseconds } from '../domain/duration.ts';
import { MAX_HOLDS, toBounds, type ScaleBounds } from '../domain/scale.ts';
import { MAX_SET_NAME, runnerWorkflowId } from '../domain/setRunnerNames.ts';
import { needsVolumeSlots } from '../domain/volumeSlots.ts';
import { isObject } from '../domain/isObject.ts';
import {
  durationString,
  durationFields,
  durationOrZero,
  parseAndCheck,
  type FieldsOf,
  type Parsed,
} from './fields.ts';
import { parseRunnerInput, type RunnerValidationContext, type RunnerSpec } from './runner.ts';

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

/**
 * Maximum number of runners, limited by the state that continue-as-new carries over. A larger fleet
 * consists of several sets.
 */
export const MAX_RUNNERS = 5_000;

/**
 * Maximum size of a declaration without its holds, as JSON (characters). Continue-as-new carries it
 * over.
 */
const MAX_DECLARATION = 256 * 1024;

const UTC = 'UTC';
const size = z
  .number()
  .int('must be a whole number')
  .min(0, 'must be 0 or more')
  .max(MAX_RUNNERS, `must be at most ${MAX_RUNNERS}: make a larger fleet of several sets`);
const scaleFields = {
  replicas: size.exactOptional(),
  minIdle: size.exactOptional(),
  max: size.exactOptional(),
};

/** Schema of a set, except for its template. Unknown fields are errors. */
export const setSchema = z.strictObject({
  name: z
    .string('is missing')
    .max(
      MAX_SET_NAME,
      `must be at most ${MAX_SET_NAME} characters: suffixes are appended, and a runner name has at most 64`,
    )
    .regex(
      /^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$/,
      'must consist of letters, digits, ".", "_" and "-", and begin and end with a letter or a digit',
    ),
  ...scaleFields,
  replaceAhead: size.exactOptional(),
  groupJobs: z.boolean().exactOptional(),
  capacity: z.enum(SET_CAPACITIES, `must be ${SET_CAPACITIES.join(' or ')}`).exactOptional(),
  ...durationFields(SET_DELAYS, durationOrZero),
  // Parsed separately, so that its errors are reported together with those of the set.
  template: z.custom<RunnerSetInput['template']>(
    isObject,
    'is required: it is the input of each runner',
  ),
  schedules: z
    .array(
      z.strictObject({
        ...scaleFields,
        cron: z.string().min(1).max(200),
        timeZone: z.string().min(1).max(100).exactOptional(),
        duration: durationString,
      }),
    )
    .max(50, 'must be at most 50')
    .exactOptional(),
  limits: z
    .strictObject({
      perRepository: size.min(1, 'must be 1 or more').exactOptional(),
      repositories: z
        .array(
          z.strictObject({
            repositories: z
              .array(z.string().min(1).max(200))
              .min(1, 'must name at least one repository')
              .max(100),
            max: size,
          }),
        )
        .max(50, 'must be at most 50')
        .exactOptional(),
      maxRunnerHours: z
        .number()
        .positive('must be more than 0')
        .max(24 * MAX_RUNNERS, 'is more than all runners of a set have in a day: remove it')
        .exactOptional(),
    })
    .exactOptional(),
  priority: z.enum(SET_PRIORITIES, `must be ${SET_PRIORITIES.join(', ')}`).exactOptional(),
  rollout: z
    .strictObject({
      maxSurge: z
        .number()
        .int('must be a whole number')
        .min(1, 'must be 1 or more')
        .max(MAX_RUNNERS)
        .exactOptional(),
    })
    .exactOptional(),
  holds: z.array(z.string().min(1).max(200)).max(MAX_HOLDS).exactOptional(),
  paused: z.boolean().exactOptional(),
  intervals: z.strictObject(durationFields(SET_INTERVALS)).exactOptional(),
} satisfies FieldsOf<RunnerSetInput>);

/**
 * Returns why a schedule is invalid, or `undefined` if it is valid. Only activities know cron
 * expressions and time zones.
 */
export type ScheduleValidator = (schedule: {
  readonly cron: string;
  readonly timeZone: string;
}) => string | undefined;

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
  const parsed = parseAndCheck(setSchema, raw, (each: RunnerSetInput) => [
    ...scaleErrors(each, ''),
    ...scheduleErrors(each, checkSchedule),
    ...limitErrors(each),
    ...templateErrors(each),
    ...scaleSetErrors(each),
    ...capacityErrors(each),
  ]);
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
    ...(parsed.ok && runner.ok
      ? [...replaceAheadErrors(parsed.spec, runner.spec), ...sizeErrors(parsed.spec)]
      : []),
  ];
  if (!parsed.ok || !runner.ok || errors.length > 0) return { ok: false, errors };
  const input: RunnerSetInput = parsed.spec;
  return {
    ok: true,
    spec: { ...toSpec(input, runner.spec, hash(input.template)), runner: runner.spec },
  };
}

function scaleErrors({ replicas, minIdle, max }: SetScale, at: string): InputError[] {
  if (replicas !== undefined) {
    const also = Object.keys(omitUndefined({ minIdle, max })).map((field) => at + field);
    return also.length === 0
      ? []
      : [
          {
            code: 'conflict',
            field: also.join(', '),
            message: 'and replicas exclude each other: give replicas, or max with minIdle',
          },
        ];
  }
  if (max === undefined)
    return [
      {
        code: 'required',
        field: minIdle === undefined ? `${at}replicas` : `${at}max`,
        message:
          'is missing: give replicas for a fixed number, or max and minIdle for one that follows demand',
      },
    ];
  return (minIdle ?? 0) > max
    ? [{ code: 'out_of_range', field: `${at}minIdle`, message: `is more than max (${max})` }]
    : [];
}

function scheduleErrors(
  { schedules = [] }: RunnerSetInput,
  check: ScheduleValidator,
): InputError[] {
  return schedules.flatMap((schedule, index): InputError[] => {
    const errors = scaleErrors(schedule, `schedules.${index}.`);
    const message = check({ cron: schedule.cron, timeZone: schedule.timeZone ?? UTC });
    return message === undefined
      ? errors
      : [...errors, { code: 'invalid', field: `schedules.${index}.cron`, message }];
  });
}

function limitErrors({ limits: { repositories = [] } = {} }: RunnerSetInput): InputError[] {
  return repositories.flatMap(({ repositories }, entry) =>
    repositories.flatMap((name, index): InputError[] => {
      const fault =
        patternError(name) ??
        (name.includes('/')
          ? undefined
          : `must be "owner/repo", or "${name}/*" for all of ${name}`);
      return fault === undefined
        ? []
        : [
            {
              code: 'invalid',
              field: `limits.repositories.${entry}.repositories.${index}`,
              message: fault,
            },
          ];
    }),
  );
}

function sizeErrors({ holds: _holds, ...input }: RunnerSetInput): InputError[] {
  return JSON.stringify(input).length <= MAX_DECLARATION
    ? []
    : [
        {
          code: 'out_of_range',
          field: 'template',
          message: `must be at most ${MAX_DECLARATION / 1024} KiB of JSON, together with schedules and limits`,
        },
      ];
}

function templateErrors({ template }: RunnerSetInput): InputError[] {
  return ['name', 'set']
    .filter((field) => field in template)
    .map((field): InputError => ({
      code: 'reserved',
      field: `template.${field}`,
      message: 'is given by the set; remove it',
    }));
}

/** Returns the fields that have no meaning in a set whose jobs GitHub assigns. */
function scaleSetErrors(input: RunnerSetInput): InputError[] {
  if (input.template.demand !== 'scaleSet') return [];
  const { perRepository, repositories } = input.limits ?? {};
  const given = {
    queueCheck: input.queueCheck,
    groupJobs: input.groupJobs,
    'limits.perRepository': perRepository,
    'limits.repositories': repositories,
  };
  return Object.keys(omitUndefined(given)).map((field) => ({
    code: 'not_applicable',
    field,
    message:
      'has no meaning with template.demand "scaleSet", because GitHub assigns the jobs; remove it',
  }));
}

function capacityErrors({ capacity, replicas, schedules = [] }: RunnerSetInput): InputError[] {
  if (capacity !== 'observed') return [];
  const errors = schedules.flatMap((schedule, index): InputError[] =>
    schedule.replicas === undefined
      ? []
      : [
          {
            code: 'conflict',
            field: `schedules.${index}.replicas`,
            message: 'must not be combined with capacity "observed"; use max',
          },
        ],
  );
  if (replicas !== undefined)
    errors.unshift({
      code: 'not_applicable',
      field: 'capacity',
      message: 'must not be "observed" with replicas, whose number is fixed; use max, or remove it',
    });
  return errors;
}

function replaceAheadErrors(
  { replaceAhead = 0, replicas = 0, template }: RunnerSetInput,
  { ephemeral, scope }: RunnerSpec,
): InputError[] {
  if (replaceAhead === 0) return [];
  const field = 'replaceAhead';
  const errors: InputError[] = [];
  if (scope === undefined || !ephemeral)
    errors.push({
      code: 'not_applicable',
      field,
      message:
        'is for ephemeral runners of a CI server: others need no successor when their job starts; remove it',
    });
  if (needsVolumeSlots(template))
    errors.push({
      code: 'conflict',
      field,
      message:
        'must not be combined with volumes of slots, because a successor would need one more; remove it',
    });
  if (replicas + replaceAhead > MAX_RUNNERS)
    errors.push({
      code: 'out_of_range',
      field,
      message: `and replicas must be at most ${MAX_RUNNERS} together: make a larger fleet of several sets`,
    });
  return errors;
}

function toSchedules({ schedules = [], replaceAhead }: RunnerSetInput): SetScheduleSpec[] {
  return schedules.map(({ cron, timeZone = UTC, duration: lasts, ...scale }) => ({
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
