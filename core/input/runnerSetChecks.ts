/** Checks combinations of fields of a set's input. Pure. */
import type { InputError, RunnerSetInput, SetScale } from '../contract/index.ts';
import { omitUndefined } from '../domain/omitUndefined.ts';
import { patternError } from '../domain/filterPattern.ts';
import { needsVolumeSlots } from '../domain/volumeSlots.ts';
import type { RunnerSpec } from './runner.ts';
import { MAX_RUNNERS, DEFAULT_TIME_ZONE } from './runnerSetSchema.ts';

/**
 * Maximum size of a declaration without its holds, as JSON (characters). Continue-as-new carries it
 * over.
 */
const MAX_DECLARATION = 256 * 1024;

/**
 * Returns why a schedule is invalid, or `undefined` if it is valid. Only activities know cron
 * expressions and time zones.
 */
export type ScheduleValidator = (schedule: {
  readonly cron: string;
  readonly timeZone: string;
}) => string | undefined;

/** Returns all errors of combinations of a set's own fields. */
export function setErrors(input: RunnerSetInput, check: ScheduleValidator): InputError[] {
  return [
    ...scaleErrors(input, ''),
    ...scheduleErrors(input, check),
    ...limitErrors(input),
    ...templateErrors(input),
    ...scaleSetErrors(input),
    ...capacityErrors(input),
  ];
}

/** Returns the errors that only a set with a valid template can have. */
export function setErrorsWithRunner(input: RunnerSetInput, runner: RunnerSpec): InputError[] {
  return [...replaceAheadErrors(input, runner), ...sizeErrors(input)];
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
    const message = check({
      cron: schedule.cron,
      timeZone: schedule.timeZone ?? DEFAULT_TIME_ZONE,
    });
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
