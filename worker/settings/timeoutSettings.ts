/** HOLDFAST_TIMEOUTS and its file: timeouts by scope. */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { z } from 'zod';
import { parseDuration } from '../../core/domain/duration.ts';
import type { TimeoutPolicy } from '../../core/input/timeoutPolicy.ts';
import type { ConfigProblem } from './configError.ts';
import { parseJson } from './settingTypes.ts';

const duration = z.string().refine((text) => (parseDuration(text) ?? 0) > 0, 'is not a duration: write for example 30s, 10m or 1h30m');
const timeouts = z
  .strictObject({
    podUnscheduled: duration,
    podPending: duration,
    registration: duration,
    jobTimeout: duration,
    jobTimeoutCap: duration,
    signalTimeout: duration,
    cleanupTimeout: duration,
  })
  .partial();
const scope = z.string().regex(/^(enterprises\/)?[A-Za-z0-9_.-]+$|^[A-Za-z0-9_.-]+\/[A-Za-z0-9_.-]+$/, 'is no scope: write an organization ("acme"), a repository ("acme/web") or "enterprises/NAME"');
const policy = z.strictObject({ default: timeouts.optional(), scopes: z.record(scope, timeouts).optional() });

/** @param problems - gets an entry for everything that is wrong; the result is then of no use */
export function readTimeouts(set: Readonly<Record<string, string | undefined>>, problems: ConfigProblem[]): TimeoutPolicy {
  const inline = set['HOLDFAST_TIMEOUTS'];
  const file = set['HOLDFAST_TIMEOUTS_FILE'];
  if (inline === undefined && file === undefined) return {};
  const setting = inline === undefined ? 'HOLDFAST_TIMEOUTS_FILE' : 'HOLDFAST_TIMEOUTS';
  let value: unknown;
  try {
    value = inline === undefined ? parse(readFileSync(file ?? '', 'utf8'), { prettyErrors: false }) : parseJson(inline);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    problems.push({ setting, message: code?.startsWith('E') === true ? `cannot read ${file} (${code}): check the path and its permissions` : `${file} is neither YAML nor JSON: check its syntax` });
    return {};
  }
  const parsed = policy.safeParse(value);
  if (parsed.success) return parsed.data as TimeoutPolicy;
  for (const issue of parsed.error.issues) problems.push({ setting, message: `${issue.path.join('.')} ${messageOf(issue)}`.trim() });
  return {};
}

function messageOf(issue: z.core.$ZodIssue): string {
  if (issue.code === 'unrecognized_keys') return `has unknown fields: ${issue.keys.join(', ')}`;
  if (issue.code === 'invalid_key') return issue.issues.map(({ message }) => message).join('; ');
  return issue.message;
}
