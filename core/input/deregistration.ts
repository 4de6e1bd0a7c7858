/**
 * Parses the input of the `deregistration` workflow, which a person or a `runner` workflow wrote,
 * into a {@link DeregistrationSpec}.
 */
import { z } from 'zod';
import { DEREGISTRATION_TIMEOUTS, type DeregistrationInput } from '../contract/index.ts';
import { CI_ID_PATTERN } from '../domain/ciId.ts';
import type { Scope } from '../domain/ciServer.ts';
import { toMilliseconds, type Milliseconds } from '../domain/duration.ts';
import {
  credentialName,
  DEFAULT_CREDENTIAL,
  durationFields,
  parseInput,
  scopeErrors,
  scopeFields,
  resolveScope,
  type FieldsOf,
  type Parsed,
} from './fields.ts';

/** A validated deregistration. */
export interface DeregistrationSpec extends Milliseconds<typeof DEREGISTRATION_TIMEOUTS> {
  readonly scope: Scope;
  readonly credential: string;
  readonly runner: DeregistrationInput['runner'];
  readonly inScaleSet?: true;
  readonly reason: string;
}

const schema = z.strictObject({
  ...scopeFields,
  ...durationFields(DEREGISTRATION_TIMEOUTS),
  credential: credentialName.exactOptional(),
  runner: z.strictObject(
    {
      name: z.string().min(1).max(64),
      id: z
        .string('must be a string, such as "42"')
        .regex(CI_ID_PATTERN, 'must be an ID such as "42", without white space and "/?#%"')
        .exactOptional(),
    },
    'must be an object with "name" and, if it is known, "id"',
  ),
  inScaleSet: z.boolean().exactOptional(),
  reason: z.string().max(500).exactOptional(),
} satisfies FieldsOf<DeregistrationInput>);

/** Parses the input of a deregistration. Reports all errors at once. */
export function parseDeregistrationInput(raw: unknown): Parsed<DeregistrationSpec> {
  const parsed = parseInput(schema, raw);
  if (!parsed.ok) return parsed;
  const errors = scopeErrors(parsed.spec);
  if (errors.length > 0) return { ok: false, errors };
  const {
    credential = DEFAULT_CREDENTIAL,
    runner,
    inScaleSet = false,
    reason = 'asked for by hand',
    organization: _o,
    repository: _r,
    enterprise: _e,
    ...timeouts
  } = parsed.spec;
  return {
    ok: true,
    spec: {
      scope: resolveScope(parsed.spec),
      credential,
      runner,
      ...(inScaleSet ? { inScaleSet } : {}),
      reason,
      ...toMilliseconds({ ...DEREGISTRATION_TIMEOUTS, ...timeouts }),
    },
  };
}
