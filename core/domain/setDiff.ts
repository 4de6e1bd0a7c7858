/** What would change in a set, field by field. Pure. */
import type { RunnerSetInput } from '../contract/index.ts';
import { omitUndefined } from './omitUndefined.ts';

/** One field that differs. Without `from` it is new, without `to` it goes. */
export interface SetChange {
  /** `template.labels`, `schedules.0.max` */
  readonly field: string;
  readonly from?: unknown;
  readonly to?: unknown;
  /** The values are of an environment: they may be what nobody is to read. They are left out. */
  readonly redacted?: true;
}

/**
 * The fields in which two declarations differ, in the order of their names.
 *
 * `holds` and `paused` say nothing where they are absent in what is applied: they stay as they are.
 */
export function diffSets(before: RunnerSetInput, after: RunnerSetInput): SetChange[] {
  const { holds, paused } = before;
  return diffDeclarations(
    before,
    { ...omitUndefined({ holds, paused }), ...omitUndefined(after) },
    isEnvironment,
  );
}

/** @param isHidden - tells fields whose values may be what nobody is to read */
function diffDeclarations(
  before: object,
  after: object,
  isHidden: (field: string) => boolean,
): SetChange[] {
  const [old, wanted] = [leafFields(before), leafFields(after)];
  const fields = [...new Set([...old.keys(), ...wanted.keys()])].toSorted();
  return fields.flatMap((field) => {
    const [from, to] = [old.get(field), wanted.get(field)];
    if (same(from, to)) return [];
    if (isHidden(field))
      return [
        {
          field,
          ...(from === undefined ? {} : { from: HIDDEN }),
          ...(to === undefined ? {} : { to: HIDDEN }),
          redacted: true as const,
        },
      ];
    return [{ field, ...omitUndefined({ from, to }) }];
  });
}

/** A template that differs starts a rollout. */
export const startsRollout = (changes: readonly SetChange[]): boolean =>
  changes.some(({ field }) => field === 'template' || field.startsWith('template.'));

/** `+ max: 10`, `- replicas: 3`, `~ scaleDownDelay: 10m → 5m` */
export function changeText({ field, from, to, redacted }: SetChange): string {
  if (redacted)
    return `${from === undefined ? '+' : to === undefined ? '-' : '~'} ${field}: (not shown)`;
  if (from === undefined) return `+ ${field}: ${text(to)}`;
  if (to === undefined) return `- ${field}: ${text(from)}`;
  return `~ ${field}: ${text(from)} → ${text(to)}`;
}

/** A key with dots in it must not read as a path. */
const quoted = (key: string): string => (key.includes('.') ? JSON.stringify(key) : key);

const HIDDEN = '(not shown)';

/** Paths to everything that has no parts worth telling apart: lists of plain values are one. */
function leafFields(
  value: unknown,
  path: readonly string[] = [],
  into = new Map<string, unknown>(),
): Map<string, unknown> {
  const parts = children(value);
  if (parts === undefined || parts.length === 0) into.set(path.map(quoted).join('.'), value);
  else
    for (const [key, part] of parts) if (part !== undefined) leafFields(part, [...path, key], into);
  return into;
}

function children(value: unknown): [string, unknown][] | undefined {
  if (value === null || typeof value !== 'object') return undefined;
  if (!Array.isArray(value)) return Object.entries(value);
  return value.some((item) => item !== null && typeof item === 'object')
    ? Object.entries(value)
    : undefined;
}

/** Values in `env` of the template, and of the containers of its pod; of those the names may be seen, and where a value comes from. */
const isEnvironment = (field: string): boolean =>
  /^template\.env(\.|$)|^template\.pod\.spec\.\w+\.\d+\.env\.(?!\d+\.(name$|valueFrom\.))/.test(
    field,
  );

const same = (a: unknown, b: unknown): boolean =>
  a !== undefined && b !== undefined && JSON.stringify(a) === JSON.stringify(b);

const text = (value: unknown): string =>
  typeof value === 'string'
    ? value
    : Array.isArray(value)
      ? `[${value.map(text).join(', ')}]`
      : JSON.stringify(value);
