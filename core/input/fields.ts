/** What the inputs of the workflows have in common: fields, and how their errors are told. */
import { isObject } from '../domain/isObject.ts';
import { z } from 'zod';
import { parseDuration } from '../domain/duration.ts';
import { isRejectedPayload, REJECTED_PAYLOAD } from '../domain/rejectedPayload.ts';
import type { Scope } from '../domain/ciServer.ts';

// Some places forbid code generation; zod's interpreter is as fast for one object.
z.config({ jitless: true });

/** One thing wrong with the input: the field, what is wrong, and how to mend it. */
export interface InputError {
  readonly field: string;
  readonly message: string;
}

/** Input that was validated: what the workflow works with, or everything that is wrong. */
export type Parsed<T> = { ok: true; spec: T } | { ok: false; errors: InputError[] };

/** The fields of a schema for what the contract documents as `T`: one too many, too few or of a wider type does not compile. */
export type FieldsOf<T> = {
  readonly [Field in keyof T]-?: z.ZodType<unknown, T[Field] | undefined>;
};

const NO_DURATION = 'is not a duration; write for example "30s", "10m" or "1h30m"';
/** A duration string, longer than nothing. */
export const durationString = z
  .string()
  .refine((text) => (parseDuration(text) ?? 0) > 0, NO_DURATION);
/** A duration string; `0s` for not at all. */
export const durationOrZero = z
  .string()
  .refine((text) => parseDuration(text) !== undefined, NO_DURATION);

/** The fields of a table of durations; each may be left out. */
export function durationFields<Defaults extends object>(
  defaults: Defaults,
  field = durationString,
): { [Field in keyof Defaults]: z.ZodExactOptional<z.ZodString> } {
  return Object.fromEntries(Object.keys(defaults).map((name) => [name, field.exactOptional()])) as {
    [Field in keyof Defaults]: z.ZodExactOptional<z.ZodString>;
  };
}

/** A short name. One of dots alone would leave its place in a URL's path. */
export const identifier = (what: string) =>
  z
    .string()
    .regex(
      /^(?!\.+$)[A-Za-z0-9_.-]{1,100}$/,
      `must be ${what}: letters, digits, ".", "_" and "-", at most 100`,
    );

/** A name as Kubernetes has them. */
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

/** `owner/repo`. @param missing - what is said where there is none */
export const repositoryName = (missing?: string) =>
  z
    .string(missing)
    .regex(
      /^(?!\.+\/)[A-Za-z0-9_.-]{1,100}\/(?!\.+$)[A-Za-z0-9_.-]{1,100}$/,
      'must be "owner/repo"',
    );

/** Exactly one of these three; see {@link scopeErrors}. */
export const scopeFields = {
  organization: identifier('an organization').exactOptional(),
  repository: repositoryName().exactOptional(),
  enterprise: identifier('an enterprise').exactOptional(),
};

/** A credential of the worker's config. */
export const credentialName = identifier('a credential name');
/** The credential of an input that names none. */
export const DEFAULT_CREDENTIAL = 'default';

interface ScopeInput {
  organization?: string;
  repository?: string;
  enterprise?: string;
}

/** No name of a field, a label or a resource is longer; in characters. */
const MAX_NAME = 253;
const nameOf = (key: PropertyKey): string =>
  String(key).length > MAX_NAME ? `${String(key).slice(0, MAX_NAME)}…` : String(key);

/** The input as the schema has it, or every error at once. @param raw - what somebody has written */
export function parseInput<Schema extends z.ZodType>(
  schema: Schema,
  raw: unknown,
): Parsed<z.output<Schema>> {
  if (isRejectedPayload(raw))
    return { ok: false, errors: [rejectedPayloadError(raw.slice(REJECTED_PAYLOAD.length))] };
  try {
    const parsed = schema.safeParse(raw);
    return parsed.success
      ? { ok: true, spec: parsed.data }
      : { ok: false, errors: parsed.error.issues.flatMap(toErrors) };
  } catch (error) {
    // zod measures whatever has a length, also where it must be a text or a list, and an object's length may be no number.
    if (!(error instanceof TypeError)) throw error;
    return {
      ok: false,
      errors: [
        {
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
  return { field: 'input', message };
}

/** What zod found, as field and message. */
function toErrors(issue: z.core.$ZodIssue): InputError[] {
  const path = issue.path.map(nameOf).join('.');
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({
      field: path ? `${path}.${nameOf(key)}` : nameOf(key),
      message: 'is not a known field; check the spelling',
    }));
  }
  if (issue.code === 'invalid_key')
    return issue.issues.map((inner) => ({ field: path, message: inner.message }));
  return [{ field: path || 'input', message: issue.message }];
}

/** Exactly one scope has to be named. */
export function scopeErrors(input: ScopeInput): InputError[] {
  const given = (['organization', 'repository', 'enterprise'] as const).filter(
    (field) => input[field] !== undefined,
  );
  if (given.length === 1) return [];
  if (given.length === 0)
    return [
      {
        field: 'organization',
        message: 'is missing: give exactly one of organization, repository or enterprise',
      },
    ];
  return [
    {
      field: given.join(', '),
      message: 'exclude each other: give exactly one of organization, repository or enterprise',
    },
  ];
}

/** The scope of an input that was checked to name exactly one. */
export function resolveScope(input: ScopeInput): Scope {
  if (input.repository !== undefined) return { kind: 'repository', name: input.repository };
  if (input.enterprise !== undefined) return { kind: 'enterprise', name: input.enterprise };
  return { kind: 'organization', name: input.organization ?? '' };
}
