/** Parses the input of the sweep into a {@link SweepSpec}. */
import { z } from 'zod';
import { SWEEP_LIMITS, type SweepInput, type SweepScope } from '../contract/index.ts';
import type { Scope } from '../domain/ciServer.ts';
import { omitUndefined } from '../domain/omitUndefined.ts';
import { toMilliseconds, type Milliseconds } from '../domain/duration.ts';
import {
  credentialName,
  DEFAULT_CREDENTIAL,
  durationFields,
  durationOrZero,
  parseInput,
  scopeErrors,
  scopeFields,
  resolveScope,
  type FieldsOf,
  type Parsed,
} from './fields.ts';

/** Limits by which a sweep decides (ms). */
export type SweepLimits = Milliseconds<typeof SWEEP_LIMITS>;

/** A scope and the credential with which it is accessed. */
export interface CredentialScope {
  readonly scope: Scope;
  readonly credential: string;
}

/** A validated sweep with its defaults filled in. */
export interface SweepSpec extends SweepLimits {
  readonly dryRun: boolean;
  readonly force: boolean;
  readonly takeOver?: string;
  readonly scopes: readonly CredentialScope[];
}

const scope = z.strictObject({
  ...scopeFields,
  credential: credentialName.exactOptional(),
} satisfies FieldsOf<SweepScope>);

const schema = z.strictObject({
  ...durationFields(SWEEP_LIMITS, durationOrZero),
  dryRun: z.boolean().exactOptional(),
  force: z.boolean().exactOptional(),
  takeOver: z
    .string()
    .regex(/^[A-Za-z0-9-]{1,64}$/, 'must be the ID of a Temporal namespace, as in the report')
    .exactOptional(),
  scopes: z.array(scope).max(1_000, 'must have at most 1000 scopes').exactOptional(),
} satisfies FieldsOf<SweepInput>);

/**
 * Parses the input of a sweep. Reports all errors at once.
 * @param raw - the only argument of the workflow. Absent: the defaults
 */
export function parseSweepInput(raw: unknown = {}): Parsed<SweepSpec> {
  const parsed = parseInput(schema, raw ?? {});
  if (!parsed.ok) return parsed;
  const { dryRun = false, force = false, takeOver, scopes = [], ...limits } = parsed.spec;
  const errors = scopes.flatMap((each, index) =>
    scopeErrors(each).map((error) => ({ ...error, field: `scopes.${index}.${error.field}` })),
  );
  if (errors.length > 0) return { ok: false, errors };
  return {
    ok: true,
    spec: {
      dryRun,
      force,
      ...omitUndefined({ takeOver }),
      scopes: scopes.map((each) => ({
        scope: resolveScope(each),
        credential: each.credential ?? DEFAULT_CREDENTIAL,
      })),
      ...toMilliseconds({ ...SWEEP_LIMITS, ...limits }),
    },
  };
}
