/** The first step of a set, and of every change of its declaration: see admit.ts. */
import { createHash } from 'node:crypto';
import type { RunnerSetInput } from '../../core/contract/index.ts';
import { parseRunnerSetInput } from '../../core/input/runnerSet.ts';
import { ciServerTraits, credentialError, invalidInput } from '../runner/admit.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { ActivityPorts } from '../ports.ts';
import { scheduleError, activeSchedule } from './schedules.ts';
import type { AdmittedSet } from '../../core/activities/index.ts';

const GENERATION_DIGITS = 10;

/** @throws ApplicationFailure `InvalidInput` (non-retryable), naming every bad field */
export function admitSet(
  { compute, ciServers, timeoutPolicy }: ActivityPorts,
  { input }: { input: unknown },
): AdmittedSet {
  const parsed = parseRunnerSetInput(input, {
    hash: templateHash,
    checkSchedule: scheduleError,
    policy: timeoutPolicy,
  });
  if (!parsed.ok) throw invalidInput(parsed.errors);
  const { runner, ...spec } = parsed.spec;
  const faults = compute.validate(runner.pod);
  if (faults.length > 0)
    throw invalidInput(faults.map((message) => ({ field: 'template:', message })));
  const fault = credentialError(ciServers, runner);
  if (fault !== undefined) throw invalidInput([{ field: 'template.credential:', message: fault }]);
  const at = Date.now();
  const { jobLimits } = ciServerTraits(ciServers, runner) ?? {};
  return {
    spec: { ...spec, ...omitUndefined({ jobLimits }) },
    declaration: input as RunnerSetInput,
    schedule: activeSchedule(spec.schedules, at),
    at,
  };
}

/** The same for templates that say the same, in whatever order their fields are written. */
export function templateHash(template: unknown): string {
  return createHash('sha256').update(canonical(template)).digest('hex').slice(0, GENERATION_DIGITS);
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const fields = Object.entries(value)
    .filter(([, field]) => field !== undefined)
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([key, field]) => `${JSON.stringify(key)}:${canonical(field)}`).join(',')}}`;
}
