/** HOLDFAST_TIMEOUTS and its file: timeouts by scope. */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { toErrors } from '../../core/input/fields.ts';
import { timeoutPolicySchema, type TimeoutPolicy } from '../../core/input/timeoutPolicy.ts';
import type { ConfigProblem } from './configError.ts';

/** @param problems - gets an entry for everything that is wrong; the result is then of no use */
export function readTimeouts(set: Readonly<Record<string, string | undefined>>, problems: ConfigProblem[]): TimeoutPolicy {
  const inline = set['HOLDFAST_TIMEOUTS'];
  const file = set['HOLDFAST_TIMEOUTS_FILE'];
  if (inline === undefined && file === undefined) return {};
  const setting = inline === undefined ? 'HOLDFAST_TIMEOUTS_FILE' : 'HOLDFAST_TIMEOUTS';
  let value: unknown;
  try {
    // JSON is YAML.
    value = parse(inline ?? readFileSync(file ?? '', 'utf8'), { prettyErrors: false });
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    const what = inline === undefined ? file : 'it';
    problems.push({ setting, message: code?.startsWith('E') === true ? `cannot read ${file} (${code}): check the path and its permissions` : `${what} is neither YAML nor JSON: check its syntax` });
    return {};
  }
  const parsed = timeoutPolicySchema.safeParse(value);
  if (parsed.success) return parsed.data;
  problems.push(...parsed.error.issues.flatMap(toErrors).map(({ field, message }) => ({ setting, message: `${field} ${message}` })));
  return {};
}
