/** Declared jobs: from what people write (JobDefinitionInput) to what the workflow goes by ({@link DefinitionSpec}). */
import { z } from 'zod';
import {
  DEFINITION_INTERVALS,
  type ChangeFilter,
  type JobDefinitionInput,
  type JobSchedule,
  type JobTriggers,
} from '../contract/index.ts';
import { defined } from '../domain/omitUndefined.ts';
import { jobOf } from '../domain/declaredJob.ts';
import { milliseconds, type Milliseconds } from '../domain/duration.ts';
import { isForOutsiders, volumeKinds } from '../domain/untrustedJobs.ts';
import { patternFault } from '../domain/filterPattern.ts';
import {
  durationFields,
  DEFAULT_CREDENTIAL,
  readInput,
  repositoryName,
  type FieldsOf,
  type InputError,
  type Parsed,
} from './fields.ts';
import { inputSizeError, jobSchema, parseJobInput, type JobAdmission } from './job.ts';
import type { CheckSchedule } from './runnerSet.ts';

/** A validated declared job, with every default filled in. */
export interface DefinitionSpec extends Milliseconds<typeof DEFINITION_INTERVALS> {
  readonly name: string;
  readonly repository: string;
  readonly credential: string;
  readonly push?: ChangeFilter;
  readonly pullRequest?: ChangeFilter;
  readonly schedules: readonly Required<JobSchedule>[];
  readonly untrusted: boolean;
  /** Absent: any number. */
  readonly maxConcurrency?: number;
}

/** What the check takes from who asks. */
export interface DefinitionAdmission extends Pick<JobAdmission, 'policy'> {
  readonly checkSchedule: CheckSchedule;
}

const MAX_PATTERNS = 100;
const LONGEST_PATTERN = 500;
const pattern = z
  .string()
  .max(LONGEST_PATTERN, `must be at most ${LONGEST_PATTERN} characters`)
  .superRefine((text, context) => {
    const fault = patternFault(text);
    if (fault !== undefined) context.addIssue({ code: 'custom', message: fault });
  });
const patterns = z
  .array(pattern, 'must be a list of patterns')
  .min(1, 'must have at least one pattern, or be left out')
  .max(MAX_PATTERNS, `must have at most ${MAX_PATTERNS} patterns`)
  .refine(
    (all) => !all.every((each) => each.startsWith('!')),
    'must have a pattern without "!", or nothing passes; "**" stands for all',
  )
  .exactOptional();
const filter = z
  .strictObject({ branches: patterns, paths: patterns } satisfies FieldsOf<ChangeFilter>)
  .nullable()
  .exactOptional();
const schedule = z.strictObject({
  cron: z.string('is missing').min(1).max(200),
  timeZone: z.string().min(1).max(100).exactOptional(),
} satisfies FieldsOf<JobSchedule>);
const NO_TRIGGER = 'must have at least one of push, pull_request and schedule';

/** Field by field. Unknown fields are errors. */
export const jobDefinitionSchema = jobSchema.omit({ source: true }).extend({
  repository: repositoryName('is missing: the repository that it is for, "owner/repo"'),
  on: z
    .strictObject(
      {
        push: filter,
        pull_request: filter,
        schedule: z
          .array(schedule, 'must be a list of {cron, timeZone}')
          .min(1, 'must have at least one entry')
          .max(50, 'must be at most 50')
          .exactOptional(),
      } satisfies FieldsOf<JobTriggers>,
      'is missing: what starts the job, such as {push: {branches: [main]}}',
    )
    .refine((on) => Object.keys(on).length > 0, NO_TRIGGER),
  untrusted: z.boolean('must be true or false').exactOptional(),
  maxConcurrency: z
    .number('must be a whole number')
    .int('must be a whole number')
    .min(1, 'must be 1 or more')
    .max(100, 'must be at most 100')
    .exactOptional(),
  intervals: z.strictObject(durationFields(DEFINITION_INTERVALS)).exactOptional(),
});

/** Every error is reported at once. @param raw - the argument of the signal `apply` */
export function parseJobDefinition(
  raw: unknown,
  { policy, checkSchedule }: DefinitionAdmission,
): Parsed<DefinitionSpec & { readonly warnings: readonly string[] }> {
  const tooLarge = inputSizeError(raw);
  if (tooLarge !== undefined) return { ok: false, errors: [{ field: 'input', message: tooLarge }] };
  const parsed = readInput(jobDefinitionSchema, raw);
  if (!parsed.ok) return parsed;
  const input = parsed.spec as JobDefinitionInput;
  // Its steps' ids are those of its runs, which are longer: no rule goes by them.
  const job = parseJobInput(jobOf(input), { workflowId: input.name, policy });
  const errors = [...scheduleErrors(input, checkSchedule), ...(job.ok ? [] : job.errors)];
  if (!job.ok || errors.length > 0) return { ok: false, errors };
  return {
    ok: true,
    spec: { ...toSpec(input), warnings: [...job.spec.warnings, ...outsidersWarnings(input)] },
  };
}

function scheduleErrors({ on }: JobDefinitionInput, check: CheckSchedule): InputError[] {
  return toSchedules(on).flatMap((each, index) => {
    const wrong = check(each);
    return wrong === undefined ? [] : [{ field: `on.schedule.${index}.cron`, message: wrong }];
  });
}

/** What is not there in the run of an outsider's change. */
function outsidersWarnings({
  untrusted = false,
  pre = [],
  test,
  post = [],
}: JobDefinitionInput): string[] {
  if (!untrusted) return [];
  return [...pre, ...test, ...post].flatMap(({ name, volumes = [] }) =>
    volumes
      .filter((volume) => !isForOutsiders(volume))
      .map(
        (volume) =>
          `${name}: the volume ${volume.name} (${volumeKinds(volume).join(', ')}) is not there in the runs of outsiders' changes`,
      ),
  );
}

function toSchedules({ schedule: schedules = [] }: JobTriggers): Required<JobSchedule>[] {
  return schedules.map(({ cron, timeZone = 'UTC' }) => ({ cron, timeZone }));
}

function toSpec({
  name,
  repository,
  credential = DEFAULT_CREDENTIAL,
  on,
  untrusted = false,
  maxConcurrency,
  intervals,
}: JobDefinitionInput): DefinitionSpec {
  return {
    name,
    repository,
    credential,
    ...defined({ push: filterOf(on.push), pullRequest: filterOf(on.pull_request), maxConcurrency }),
    schedules: toSchedules(on),
    untrusted,
    ...milliseconds({ ...DEFINITION_INTERVALS, ...intervals }),
  };
}

const filterOf = (asked: ChangeFilter | null | undefined): ChangeFilter | undefined =>
  asked === null ? {} : asked;
