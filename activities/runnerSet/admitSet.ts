/** Admission of a set and of every change of its declaration; see activities/runner/admit.ts. */
import { createHash } from 'node:crypto';
import { isObject } from '../../core/domain/isObject.ts';
import { drainableInputs } from '../../core/input/drainableInputs.ts';
import { parseRunnerSetInput, type SetSpec } from '../../core/input/runnerSet.ts';
import { ciServerTraits, credentialError, registrationOrigin } from '../runner/admit.ts';
import { invalidInput, isInvalidInput } from '../shared/invalidInput.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { UnknownCredentialError, type CiServers } from '../ports/ciServer.ts';
import type { ActivityPorts } from '../ports/activityPorts.ts';
import { scheduleError, activeSchedule } from './schedules.ts';
import type { SetAdmission } from '../../core/activities/index.ts';

const GENERATION_DIGITS = 10;

/**
 * Checks and completes the declaration of a set. With `continued`, the set is already running. If
 * its declaration is no longer valid, the set may only let its existing runners finish
 * (`rejection`).
 * @throws ApplicationFailure `InvalidInput` (non-retryable), which lists every invalid field
 */
export function admitSet(
  ports: ActivityPorts,
  { input, continued }: { input: unknown; continued?: true },
): SetAdmission {
  try {
    return admit(ports, input);
  } catch (error) {
    const reduced =
      continued === true && isInvalidInput(error) ? admitReduced(ports, input) : undefined;
    if (reduced === undefined) throw error;
    return { ...reduced, rejection: (error as Error).message };
  }
}

/**
 * Admits as much of a declaration as still parses, with a template that contains nothing that runs
 * in the pod. The set is paused. If someone resumes it, each runner is admitted on its own.
 * @returns `undefined` if even the fields that identify the set cannot be read: such a set was
 * never admitted
 */
function admitReduced(
  { ciServers, timeoutPolicy }: ActivityPorts,
  input: unknown,
): SetAdmission | undefined {
  if (!isObject(input) || !isObject(input['template'])) return undefined;
  const { template, ...rest } = input;
  const { name, replicas, minIdle, max } = rest;
  const size = omitUndefined({ name, replicas, minIdle, max });
  const [whole, identity] = drainableInputs(template);
  for (const reduced of [
    { ...rest, template: whole },
    { ...size, template: whole },
    { ...size, template: identity },
  ]) {
    const parsed = parseRunnerSetInput(reduced, {
      hash: () => templateHash(template),
      checkSchedule: scheduleError,
      policy: timeoutPolicy,
    });
    if (parsed.ok) {
      const { runner, template: _reduced, ...spec } = parsed.spec;
      return admitted(spec, jobLimitsOf(ciServers, runner));
    }
  }
  return undefined;
}

function jobLimitsOf(
  ciServers: CiServers,
  runner: Parameters<typeof ciServerTraits>[1],
): SetSpec['jobLimits'] {
  try {
    return ciServerTraits(ciServers, runner)?.jobLimits;
  } catch (error) {
    if (error instanceof UnknownCredentialError) return undefined;
    throw error;
  }
}

function admit({ compute, ciServers, timeoutPolicy }: ActivityPorts, input: unknown): SetAdmission {
  const parsed = parseRunnerSetInput(input, {
    hash: templateHash,
    checkSchedule: scheduleError,
    policy: timeoutPolicy,
  });
  if (!parsed.ok) throw invalidInput(parsed.errors);
  const { runner, template: _known, ...spec } = parsed.spec;
  const faults = compute.validate(runner.pod, registrationOrigin(runner));
  if (faults.length > 0)
    throw invalidInput(faults.map((message) => ({ code: 'denied', field: 'template:', message })));
  const fault = credentialError(ciServers, runner);
  if (fault !== undefined)
    throw invalidInput([{ code: 'denied', field: 'template.credential:', message: fault }]);
  return admitted(spec, ciServerTraits(ciServers, runner)?.jobLimits);
}

function admitted(spec: SetAdmission['spec'], jobLimits: SetSpec['jobLimits']): SetAdmission {
  const at = Date.now();
  return {
    spec: { ...spec, ...omitUndefined({ jobLimits }) },
    schedule: activeSchedule(spec.schedules, at),
    at,
  };
}

/**
 * Returns the hash of a template. Templates that differ only in the order of their fields have the
 * same hash.
 */
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
