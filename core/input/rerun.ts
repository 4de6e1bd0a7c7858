/** Parses the input of the `rerun` workflow into a {@link RerunSpec}. */
import { z } from 'zod';
import { RUNNER_CAUSES, type RerunInput, type RerunPolicy } from '../contract/index.ts';
import { isCiId } from '../domain/ciId.ts';
import { parseDuration } from '../domain/duration.ts';
import { isTime } from '../domain/isTime.ts';
import { omitUndefined } from '../domain/omitUndefined.ts';
import { scopeHolds, type Scope } from '../domain/ciServer.ts';
import {
  credentialName,
  DEFAULT_CREDENTIAL,
  durationString,
  identifier,
  parseInput,
  repositoryName,
  resolveScope,
  scopeErrors,
  scopeFields,
  type FieldsOf,
  type Parsed,
} from './fields.ts';

const count = (max: number) =>
  z
    .number(`must be a number from 1 to ${max}`)
    .int(`must be a whole number`)
    .min(1, `must be from 1 to ${max}`)
    .max(max, `must be from 1 to ${max}`);

const perRun = count(10);
const perDay = count(1_000);

/** Defaults of {@link RerunPolicy}. */
export const RERUN_DEFAULTS = { perRun: 1, perDay: 20 } as const;

/** Time after which GitHub itself ends the job of a runner that it has lost. */
const MAX_FORCE_CANCEL = '10m';
const forceCancelAfter = durationString.refine(
  (text) => (parseDuration(text) ?? 0) <= (parseDuration(MAX_FORCE_CANCEL) ?? 0),
  `must be at most ${MAX_FORCE_CANCEL}: GitHub ends the job by then`,
);

/** Schema of the policy in the input of a runner. */
export const rerunPolicy = z.strictObject({
  onLoss: z.boolean('must be true or false').exactOptional(),
  perRun: perRun.exactOptional(),
  perDay: perDay.exactOptional(),
  forceCancelAfter: forceCancelAfter.exactOptional(),
} satisfies FieldsOf<RerunPolicy>);

/** Schema of the ID and repository of a job at the CI server. */
export const rerunJob = z.object({
  id: z.string('must be a string, such as "42"').refine(isCiId, 'must be an ID'),
  repository: repositoryName(),
});

/** Schema of the name of a runner at the CI server. */
const runnerName = z
  .string('must be the name of a runner')
  .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/, 'must be the name of a runner');

/** A validated rerun. */
export interface RerunSpec extends Pick<
  RerunInput,
  'set' | 'runnerName' | 'cause' | 'recorded' | 'job' | 'perRun' | 'perDay'
> {
  readonly scope: Scope;
  readonly credential: string;
  /** Time at which the runner was asked to stop (ms since the epoch). */
  readonly stoppedAtMs?: number;
  /** Time after the loss at which the workflow run may be force-cancelled (ms). @default never */
  readonly forceCancelAfterMs?: number;
}

const schema = z.strictObject({
  ...scopeFields,
  credential: credentialName.exactOptional(),
  set: identifier('a set name').exactOptional(),
  runnerName,
  cause: z.enum(RUNNER_CAUSES),
  stoppedAt: z.iso
    .datetime({ offset: true, abort: true, error: 'must be a time (ISO 8601)' })
    .refine((text) => isTime(Date.parse(text)), 'must be a time since 1970')
    .exactOptional(),
  recorded: z.literal(true).exactOptional(),
  job: rerunJob.exactOptional(),
  perRun,
  perDay,
  forceCancelAfter: forceCancelAfter.exactOptional(),
} satisfies FieldsOf<RerunInput>);

/** Parses the input of a rerun. Reports all errors at once. */
export function parseRerunInput(raw: unknown): Parsed<RerunSpec> {
  const parsed = parseInput(schema, raw);
  if (!parsed.ok) return parsed;
  const errors = scopeErrors(parsed.spec);
  if (errors.length > 0) return { ok: false, errors };
  const {
    organization: _o,
    repository: _r,
    enterprise: _e,
    credential = DEFAULT_CREDENTIAL,
    stoppedAt,
    forceCancelAfter,
    ...rest
  } = parsed.spec;
  const scope = resolveScope(parsed.spec);
  if (rest.job !== undefined && !scopeHolds(scope, rest.job.repository))
    return {
      ok: false,
      errors: [
        {
          code: 'denied',
          field: 'job.repository',
          message: `must be in the scope of the runner, ${scope.name}`,
        },
      ],
    };
  return {
    ok: true,
    spec: {
      ...rest,
      scope,
      credential,
      ...omitUndefined({
        stoppedAtMs: stoppedAt === undefined ? undefined : Date.parse(stoppedAt),
        forceCancelAfterMs:
          forceCancelAfter === undefined ? undefined : parseDuration(forceCancelAfter),
      }),
    },
  };
}
