/** Schema of the input of the `runnerSet` workflow, field by field. */
import { z } from 'zod';
import {
  SET_CAPACITIES,
  SET_DELAYS,
  SET_INTERVALS,
  SET_PRIORITIES,
  type RunnerSetInput,
} from '../contract/index.ts';
import { MAX_HOLDS } from '../domain/scale.ts';
import { MAX_SET_NAME } from '../domain/setRunnerNames.ts';
import { isObject } from '../domain/isObject.ts';
import { durationString, durationFields, durationOrZero, type FieldsOf } from './fields.ts';

/**
 * Maximum number of runners, limited by the state that continue-as-new carries over. A larger fleet
 * consists of several sets.
 */
export const MAX_RUNNERS = 5_000;

/** Time zone of a schedule without one. */
export const DEFAULT_TIME_ZONE = 'UTC';

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
