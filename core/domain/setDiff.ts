/** Compares two declarations of a set field by field. Pure. */
import type { RunnerSetInput } from '../contract/index.ts';
import { omitUndefined } from './omitUndefined.ts';

/** One field that differs. Without `from` it is added, without `to` it is removed. */
export interface SetChange {
  /** Path of the field: `template.labels`, `schedules.0.max` */
  readonly field: string;
  readonly from?: unknown;
  readonly to?: unknown;
  /**
   * Whether the values belong to environment variables, which may be secret. They are left out
   * then.
   * @default false
   */
  readonly redacted?: true;
}

/**
 * Returns the fields in which two declarations differ, sorted by name.
 *
 * If `holds` or `paused` are absent in the new declaration, they stay unchanged.
 */
export function diffSets(before: RunnerSetInput, after: RunnerSetInput): SetChange[] {
  const { holds, paused } = before;
  return diffDeclarations(
    before,
    { ...omitUndefined({ holds, paused }), ...omitUndefined(after) },
    isEnvironment,
  );
}

/**
 * Returns the changed fields.
 * @param isHidden - returns whether the values of a field may be secret
 */
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

/** Whether the changes start a rollout, because the template differs. */
export const startsRollout = (changes: readonly SetChange[]): boolean =>
  changes.some(({ field }) => field === 'template' || field.startsWith('template.'));

/** Formats a change: `+ max: 10`, `- replicas: 3`, `~ scaleDownDelay: 10m → 5m` */
export function changeText({ field, from, to, redacted }: SetChange): string {
  const shown = (values: () => string): string => (redacted ? '(not shown)' : values());
  if (from === undefined) return `+ ${field}: ${shown(() => text(to))}`;
  if (to === undefined) return `- ${field}: ${shown(() => text(from))}`;
  return `~ ${field}: ${shown(() => `${text(from)} → ${text(to)}`)}`;
}

/** Quotes a key with dots, which would look like a path. */
const quoted = (key: string): string => (key.includes('.') ? JSON.stringify(key) : key);

const HIDDEN = '(not shown)';

/** Returns the values of a declaration by path. A list of plain values is one value. */
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

/**
 * Whether the field is a value in `env` of the template, or in `env` of the containers of its pod.
 * Of the latter, the names and the sources of values may be shown.
 */
const isEnvironment = (field: string): boolean =>
  /^template\.env(\.|$)|^template\.pod\.spec\.\w+\.\d+\.env\.(?!\d+\.(name$|valueFrom\.))/.test(
    field,
  );

const same = (a: unknown, b: unknown): boolean =>
  a !== undefined && b !== undefined && JSON.stringify(a) === JSON.stringify(b);

function text(value: unknown): string {
  if (typeof value === 'string') return value;
  if (Array.isArray(value)) return `[${value.map(text).join(', ')}]`;
  return JSON.stringify(value);
}
