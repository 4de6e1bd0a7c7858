/** Validation of the `deregistration` workflow's input. */
import { z } from 'zod';
import type { DeregistrationInput } from '../contract/index.ts';
import { parseDuration } from '../domain/duration.ts';
import { RUNNER_DEFAULTS } from './runnerDefaults.ts';
import { credentialName, duration, scopeErrors, scopeFields, toErrors, toScope, type Parsed } from './fields.ts';
import type { Scope } from '../domain/ciServer.ts';

/** A validated removal. Durations in ms. */
export interface DeregistrationSpec {
  readonly scope: Scope;
  readonly credential: string;
  readonly runner: DeregistrationInput['runner'];
  readonly reason: string;
  readonly giveUpMs: number;
  readonly firstRetryMs: number;
}

/** Production defaults; a table test pins them. */
export const DEREGISTRATION_DEFAULTS = { giveUpAfter: '24h', firstRetry: '1m' } as const;

const schema = z.strictObject({
  ...scopeFields,
  credential: credentialName.optional(),
  runner: z.strictObject({ name: z.string().min(1).max(64), id: z.number().int().positive().optional() }, 'is missing: give {"name": …} and, where it is known, {"id": …}'),
  reason: z.string().max(500).optional(),
  giveUpAfter: duration.optional(),
  firstRetry: duration.optional(),
});

/** Validates what people hand in, or a runner's life hands on. Every error is reported at once. */
export function parseDeregistrationInput(raw: unknown): Parsed<DeregistrationSpec> {
  const parsed = schema.safeParse(raw);
  if (!parsed.success) return { ok: false, errors: parsed.error.issues.flatMap(toErrors) };
  const input = parsed.data as DeregistrationInput;
  const errors = scopeErrors(input);
  if (errors.length > 0) return { ok: false, errors };
  const { giveUpAfter, firstRetry } = { ...DEREGISTRATION_DEFAULTS, ...input };
  const spec: DeregistrationSpec = {
    scope: toScope(input),
    credential: input.credential ?? RUNNER_DEFAULTS.credential,
    runner: input.runner,
    reason: input.reason ?? 'asked for by hand',
    giveUpMs: parseDuration(giveUpAfter) ?? Number.NaN,
    firstRetryMs: parseDuration(firstRetry) ?? Number.NaN,
  };
  return { ok: true, spec };
}
