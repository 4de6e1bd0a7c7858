/**
 * Admission: the first step of a workflow checks and completes its input before anything is
 * created.
 *
 * These are local activities for two reasons. A worker does not need a validator in each of
 * thousands of cached workflows. And the defaults that applied when a runner started are in its
 * history, so a later release with other defaults does not change it.
 */
import {
  parseDeregistrationInput,
  type DeregistrationSpec,
} from '../../core/input/deregistration.ts';
import { parseRerunInput, type RerunSpec } from '../../core/input/rerun.ts';
import type { RunnerInput } from '../../core/contract/index.ts';
import { plaintextWarnings } from '../../core/input/plaintext.ts';
import { isObject } from '../../core/domain/isObject.ts';
import { drainableInputs } from '../../core/input/drainableInputs.ts';
import { parseRunnerInput, type RunnerSpec } from '../../core/input/runner.ts';
import { runnerLocation } from '../../core/domain/location.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { RunnerGroupRef, Scope } from '../../core/domain/ciServer.ts';
import {
  registrationModeFor,
  removalEndsJob,
  type CiServerTraits,
} from '../../core/domain/ciServerTraits.ts';
import type { Parsed } from '../../core/input/fields.ts';
import { runnerHash } from '../compute/naming.ts';
import { invalidInput, isInvalidInput } from '../shared/invalidInput.ts';
import { assertServed, withClusterErrors } from '../shared/clusterActivity.ts';
import { UnknownCredentialError, type CiServers } from '../ports/ciServer.ts';
import type { ActivityPorts } from '../ports/activityPorts.ts';
import type { RegistrationOrigin } from '../ports/compute.ts';
import type { AdmitRunnerInput, AdmittedRunner } from '../../core/activities/index.ts';

/**
 * Checks and completes the input of a runner and assigns it to the location of this worker. All
 * later activities of the runner must run in this location, on any worker. A run that continues
 * another is admitted again in the location of its pods. If its input is no longer valid, the
 * runner may only drain.
 * @throws ApplicationFailure `InvalidInput` (non-retryable), which lists every invalid field
 * @throws ApplicationFailure `WrongLocation` if the runner continues in another location
 */
export async function admitRunner(
  ports: ActivityPorts,
  request: AdmitRunnerInput,
): Promise<AdmittedRunner> {
  if (request.continued === undefined) return await admitAnew(ports, request);
  await assertServed(ports, request.continued.location);
  try {
    return await admitAnew(ports, request);
  } catch (error) {
    const drained = isInvalidInput(error) ? parseToDrain(ports, request) : undefined;
    if (drained === undefined) throw error;
    return {
      ...drained,
      ...traitsToDrain(ports, drained),
      ...(await locate(ports, drained)),
      rejection: (error as Error).message,
    };
  }
}

/**
 * Returns the traits with which a runner is drained. Returns none if this worker no longer knows
 * the credential.
 */
function traitsToDrain(
  { ciServers }: ActivityPorts,
  spec: RunnerSpec,
): ReturnType<typeof traitsForRunner> {
  try {
    return traitsForRunner(ciServerTraits(ciServers, spec), spec.ephemeral);
  } catch (error) {
    if (error instanceof UnknownCredentialError) return {};
    throw error;
  }
}

/** Returns the location and the namespace of the pods of a runner that this worker admits. */
async function locate(
  { compute }: ActivityPorts,
  { pod }: RunnerSpec,
): Promise<Pick<AdmittedRunner, 'location' | 'pod'>> {
  const location = runnerLocation(
    await withClusterErrors('read the location', async () => await compute.location()),
    pod.namespace,
  );
  return { location, pod: { ...pod, ...omitUndefined({ namespace: location.namespace }) } };
}

async function admitAnew(
  ports: ActivityPorts,
  { input, workflowId, firstRunId }: AdmitRunnerInput,
): Promise<AdmittedRunner> {
  const parsed = parseRunnerInput(input, {
    workflowId,
    nameHash: runnerHash({ workflowId, firstRunId }),
    policy: ports.timeoutPolicy,
  });
  const spec = admit(ports, parsed);
  const faults = ports.compute.validate(spec.pod, registrationOrigin(spec));
  if (faults.length > 0)
    throw invalidInput(faults.map((message) => ({ code: 'denied', field: '', message })));
  const inClear = ports.encrypted === true ? [] : plaintextWarnings(input as RunnerInput);
  return {
    ...spec,
    ...traitsForRunner(ciServerTraits(ports.ciServers, spec), spec.ephemeral),
    warnings: [...spec.warnings, ...inClear],
    ...(await locate(ports, spec)),
  };
}

/** Returns how a runner registers, if it does. */
export function registrationOrigin({
  scope,
  credential,
  registrationMode: mode,
}: Pick<RunnerSpec, 'scope' | 'credential' | 'registrationMode'>): RegistrationOrigin | undefined {
  return scope && { scope, credential, mode };
}

/**
 * Parses an input that is no longer valid, with as many of its fields as still parse.
 * @returns `undefined` if even the fields that identify the runner cannot be read: such a runner
 * was never admitted
 */
function parseToDrain(
  { timeoutPolicy: policy }: ActivityPorts,
  { input, workflowId, firstRunId }: AdmitRunnerInput,
): RunnerSpec | undefined {
  if (!isObject(input)) return undefined;
  const nameHash = runnerHash({ workflowId, firstRunId });
  for (const reduced of drainableInputs(input)) {
    const parsed = parseRunnerInput(reduced, { workflowId, nameHash, policy });
    if (parsed.ok) return parsed.spec;
  }
  return undefined;
}

/**
 * Checks the input of a deregistration.
 * @throws ApplicationFailure `InvalidInput` (non-retryable), which lists every invalid field
 */
export function admitDeregistration(
  ports: ActivityPorts,
  { input }: { input: unknown },
): DeregistrationSpec {
  return admit(ports, parseDeregistrationInput(input));
}

/**
 * Checks the input of a rerun.
 * @throws ApplicationFailure `InvalidInput` (non-retryable), which lists every invalid field
 */
export function admitRerun(ports: ActivityPorts, { input }: { input: unknown }): RerunSpec {
  return admit(ports, parseRerunInput(input));
}

function admit<T extends CredentialUse>({ ciServers }: ActivityPorts, parsed: Parsed<T>): T {
  if (!parsed.ok) throw invalidInput(parsed.errors);
  const fault = credentialError(ciServers, parsed.spec);
  if (fault !== undefined)
    throw invalidInput([{ code: 'denied', field: 'credential:', message: fault }]);
  return parsed.spec;
}

interface CredentialUse {
  readonly credential: string;
  /** CI server that the credential must be for. @default any */
  readonly ciServer?: string;
  /** Absent if the runner uses no CI server. */
  readonly scope?: Scope;
  readonly runnerGroup?: RunnerGroupRef;
  /** Labels of the runner to register. */
  readonly labels?: readonly string[];
  readonly ephemeral?: boolean;
  /** Limits for reruns of lost jobs, if there are any. */
  readonly rerun?: object;
}

/**
 * Returns why the worker does not permit the credential for this scope, group or runner.
 * @returns `undefined` if the use is permitted
 */
export function credentialError(
  ciServers: CiServers,
  { credential, ciServer, scope, runnerGroup, labels, ephemeral, rerun }: CredentialUse,
): string | undefined {
  if (scope === undefined) return undefined;
  try {
    // Calls with a credential run on a task queue of their own. No worker polls the queue of an
    // unknown credential, so they would wait without any error.
    const server = ciServers.get(credential);
    if (ciServer !== undefined && server.kind !== ciServer)
      return `credential "${credential}" is for a ${server.kind} server, but ciServer is "${ciServer}"; name a credential whose server is "${ciServer}"`;
    if (server.traits.groups === undefined && (runnerGroup ?? 'default') !== 'default')
      return 'the CI server has no runner groups; remove runnerGroup and runnerGroupId';
    if (rerun !== undefined && server.reruns === undefined)
      return `credential "${credential}" may not rerun jobs; remove rerun, or set reruns: true for it in the worker's settings`;
    const mode =
      ephemeral === undefined ? undefined : registrationModeFor(server.traits, ephemeral);
    return server.accessError?.(scope, runnerGroup, omitUndefined({ labels, mode }));
  } catch (error) {
    if (error instanceof UnknownCredentialError) return error.message;
    throw error;
  }
}

/**
 * Returns the traits of the CI server of a credential.
 * @returns `undefined` if there is no scope, and therefore no CI server
 * @throws UnknownCredentialError
 */
export function ciServerTraits(
  ciServers: CiServers,
  { credential, scope }: Pick<CredentialUse, 'credential' | 'scope'>,
): CiServerTraits | undefined {
  return scope === undefined ? undefined : ciServers.get(credential).traits;
}

/**
 * Returns the traits that the workflow of a runner needs. They come from the worker's
 * configuration; no input has a field for them.
 */
export function traitsForRunner(
  traits: CiServerTraits | undefined,
  ephemeral: boolean,
): Pick<AdmittedRunner, 'removalEndsJob' | 'outlivesRegistration'> &
  Partial<Pick<AdmittedRunner, 'registrationMode'>> {
  if (traits === undefined) return {};
  return {
    registrationMode: registrationModeFor(traits, ephemeral),
    ...(removalEndsJob(traits) ? { removalEndsJob: true as const } : {}),
    ...(traits.runnerOutlivesRegistration ? { outlivesRegistration: true as const } : {}),
  };
}
