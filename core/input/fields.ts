/** Common fields of the inputs of workflows, and their errors. */
import { isObject } from '../domain/isObject.ts';
import { z } from 'zod';
import { parseDuration } from '../domain/duration.ts';
import { isRejectedPayload, REJECTED_PAYLOAD } from '../domain/rejectedPayload.ts';
import type { InputError, InputErrorCode } from '../contract/index.ts';
import type { Scope } from '../domain/ciServer.ts';

// Some environments forbid code generation. zod's interpreter is as fast for a single object.
z.config({ jitless: true });

/** Result of a validation: the validated input, or all its errors. */
export type Parsed<T> = { ok: true; spec: T } | { ok: false; errors: InputError[] };

/**
 * Fields of a schema for the type `T` of the contract. A missing or additional field, or one of a
 * wider type, is a compile error.
 */
export type FieldsOf<T> = {
  readonly [Field in keyof T]-?: z.ZodType<unknown, T[Field] | undefined>;
};

const NO_DURATION = 'is not a duration; write for example "30s", "10m" or "1h30m"';
/** A duration string greater than zero. */
export const durationString = z
  .string()
  .refine((text) => (parseDuration(text) ?? 0) > 0, NO_DURATION);
/** A duration string. `0s` means not at all. */
export const durationOrZero = z
  .string()
  .refine((text) => parseDuration(text) !== undefined, NO_DURATION);

/** Returns optional fields for a table of durations. */
export function durationFields<Defaults extends object>(
  defaults: Defaults,
  field = durationString,
): { [Field in keyof Defaults]: z.ZodExactOptional<z.ZodString> } {
  return Object.fromEntries(Object.keys(defaults).map((name) => [name, field.exactOptional()])) as {
    [Field in keyof Defaults]: z.ZodExactOptional<z.ZodString>;
  };
}

/**
 * Returns the schema of a short name. A name that consists of dots only is invalid, because it
 * would change the path of a URL.
 */
export const identifier = (what: string) =>
  z
    .string()
    .regex(
      /^(?!\.+$)[A-Za-z0-9_.-]{1,100}$/,
      `must be ${what}: letters, digits, ".", "_" and "-", at most 100`,
    );

/** Returns the schema of a Kubernetes name (DNS label). */
export const dnsLabel = (what: string) =>
  z
    .string()
    .regex(
      /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/,
      `must be ${what}: lower-case letters, digits and "-", at most 63`,
    );

/** A program and its arguments. */
export const commandLine = z
  .array(z.string())
  .min(1, 'must begin with the program to run; leave it out for that of the image')
  .refine(([first]) => first !== '', 'must begin with the program to run, which is empty');

/** Environment variables. */
export const envFields = z.record(
  z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be a name of an environment variable'),
  z.string(),
);

/**
 * Returns the schema of a repository, `owner/repo`.
 * @param missing - error if it is missing
 */
export const repositoryName = (missing?: string) =>
  z
    .string(missing)
    .regex(
      /^(?!\.+\/)[A-Za-z0-9_.-]{1,100}\/(?!\.+$)[A-Za-z0-9_.-]{1,100}$/,
      'must be "owner/repo"',
    );

/** Fields of which exactly one must be set; see {@link scopeErrors}. */
export const scopeFields = {
  organization: identifier('an organization').exactOptional(),
  repository: repositoryName().exactOptional(),
  enterprise: identifier('an enterprise').exactOptional(),
};

/** Name of a credential in the worker's configuration. */
export const credentialName = identifier('a credential name');
/** Credential of an input without a credential. */
export const DEFAULT_CREDENTIAL = 'default';

interface ScopeInput {
  organization?: string;
  repository?: string;
  enterprise?: string;
}

/**
 * Maximum length of the name of a field, a label or a resource (characters). No valid name is
 * longer.
 */
const MAX_NAME = 253;
const nameOf = (key: PropertyKey): string =>
  String(key).length > MAX_NAME ? `${String(key).slice(0, MAX_NAME)}…` : String(key);

/**
 * Parses an input with a schema. Reports all errors at once.
 * @param raw - input as it was written
 */
export function parseInput<Schema extends z.ZodType>(
  schema: Schema,
  raw: unknown,
): Parsed<z.output<Schema>> {
  if (isRejectedPayload(raw))
    return { ok: false, errors: [rejectedPayloadError(raw.slice(REJECTED_PAYLOAD.length))] };
  try {
    const parsed = schema.safeParse(raw, { reportInput: true });
    return parsed.success
      ? { ok: true, spec: parsed.data }
      : { ok: false, errors: parsed.error.issues.flatMap(toErrors) };
  } catch (error) {
    // zod reads the length of every value, even if it must be a string or a list, and the `length`
    // of an object may not be a number.
    if (!(error instanceof TypeError)) throw error;
    return {
      ok: false,
      errors: [
        {
          code: 'invalid',
          field: 'input',
          message: 'has an object with a field "length" where a text or a list must be; remove it',
        },
      ],
    };
  }
}

/**
 * Parses the input and checks what its fields mean together. If fields are invalid, the others are
 * checked all the same, so that every error is reported at once. An error that may follow from an
 * invalid field is left out.
 * @param check - returns the errors of an input that the schema accepts
 * @param decisive - fields on which most checks depend: if one of them is invalid, nothing else is
 * checked
 */
export function parseAndCheck<Schema extends z.ZodObject>(
  schema: Schema,
  raw: unknown,
  check: (input: z.output<Schema>) => InputError[],
  decisive: readonly string[] = [],
): Parsed<z.output<Schema>> {
  const parsed = parseInput(schema, raw);
  if (parsed.ok) {
    const errors = check(parsed.spec);
    return errors.length === 0 ? parsed : { ok: false, errors };
  }
  const invalid = new Set(parsed.errors.map(({ field }) => field.split('.')[0] ?? ''));
  if (!isObject(raw) || decisive.some((field) => invalid.has(field))) return parsed;
  const rest = parseInput(
    schema,
    Object.fromEntries(Object.entries(raw).filter(([field]) => !invalid.has(field))),
  );
  const further = rest.ok ? check(rest.spec).filter((error) => !mentions(error, invalid)) : [];
  return { ok: false, errors: [...parsed.errors, ...further] };
}

function mentions({ field, message }: InputError, names: ReadonlySet<string>): boolean {
  return `${field} ${message}`.split(/[^\w-]+/).some((word) => names.has(word));
}

function rejectedPayloadError(reason: string): InputError {
  const message = `was rejected by the worker's codec: ${reason}; send it by a client with the keys of HOLDFAST_CODEC_KEY_FILE`;
  return { code: 'rejected_payload', field: 'input', message };
}

/** Converts an issue of zod to fields and messages. */
function toErrors(issue: z.core.$ZodIssue): InputError[] {
  const path = issue.path.map(nameOf).join('.');
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({
      code: 'unknown_field',
      field: path ? `${path}.${nameOf(key)}` : nameOf(key),
      message: 'is not a known field; check the spelling',
    }));
  }
  if (issue.code === 'invalid_key')
    return issue.issues.map(({ message }) => ({ code: 'invalid', field: path, message }));
  return [{ code: codeOf(issue), field: path || 'input', message: issue.message }];
}

function codeOf(issue: z.core.$ZodIssue): InputErrorCode {
  if (issue.code === 'too_big' || issue.code === 'too_small') return 'out_of_range';
  return issue.input === undefined ? 'required' : 'invalid';
}

/** Checks that exactly one scope is given. */
export function scopeErrors(input: ScopeInput): InputError[] {
  const given = (['organization', 'repository', 'enterprise'] as const).filter(
    (field) => input[field] !== undefined,
  );
  if (given.length === 1) return [];
  if (given.length === 0)
    return [
      {
        code: 'required',
        field: 'organization',
        message: 'is missing: give exactly one of organization, repository or enterprise',
      },
    ];
  return [
    {
      code: 'conflict',
      field: given.join(', '),
      message: 'exclude each other: give exactly one of organization, repository or enterprise',
    },
  ];
}

/** Returns the scope of an input that was checked by {@link scopeErrors}. */
export function resolveScope(input: ScopeInput): Scope {
  if (input.repository !== undefined) return { kind: 'repository', name: input.repository };
  if (input.enterprise !== undefined) return { kind: 'enterprise', name: input.enterprise };
  return { kind: 'organization', name: input.organization ?? '' };
}
