/**
 * The first step of a workflow: its input is checked and completed before anything is done. Local activities, so that a worker does not
 * carry a validator in each of thousands of cached workflows, and so that the defaults of the day a life began are in its history: a
 * later release with other defaults does not change it.
 */
import {
  parseDeregistrationInput,
  type DeregistrationSpec,
} from '../../core/input/deregistration.ts';
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
import { UnknownCredentialError, type ActivityPorts, type CiServers } from '../ports.ts';
import type { AdmitRunnerInput, AdmittedRunner } from '../../core/activities/index.ts';

/**
 * The life is lived in this worker's place from now on, whichever worker goes on with it. A run that continues another is admitted again, in
 * the place where its pods are; what is not accepted any more may only drain.
 * @throws ApplicationFailure `InvalidInput` (non-retryable), naming every bad field; `WrongLocation` for a run of another place
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

/** What a runner is drained by of a CI server that this worker may not know any more. */
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

/** Where the pods are of a runner that this worker admits. */
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
  const faults = ports.compute.validate(spec.pod);
  if (faults.length > 0) throw invalidInput(faults.map((message) => ({ field: '', message })));
  const inClear = ports.encrypted === true ? [] : plaintextWarnings(input as RunnerInput);
  return {
    ...spec,
    ...traitsForRunner(ciServerTraits(ports.ciServers, spec), spec.ephemeral),
    warnings: [...spec.warnings, ...inClear],
    ...(await locate(ports, spec)),
  };
}

/**
 * What is left of an input that is not accepted any more: as many of its fields as still parse.
 * @returns `undefined`: not even which runner it is can be read, so it was never admitted
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

/** @throws ApplicationFailure `InvalidInput` (non-retryable), naming every bad field */
export function admitDeregistration(
  ports: ActivityPorts,
  { input }: { input: unknown },
): DeregistrationSpec {
  return admit(ports, parseDeregistrationInput(input));
}

function admit<T extends CredentialUse>({ ciServers }: ActivityPorts, parsed: Parsed<T>): T {
  if (!parsed.ok) throw invalidInput(parsed.errors);
  const fault = credentialError(ciServers, parsed.spec);
  if (fault !== undefined) throw invalidInput([{ field: 'credential:', message: fault }]);
  return parsed.spec;
}

interface CredentialUse {
  readonly credential: string;
  /** Absent: any that the credential is for. */
  readonly ciServer?: string;
  /** Absent: no CI server is asked. */
  readonly scope?: Scope;
  readonly runnerGroup?: RunnerGroupRef;
  /** Of a runner that is to be registered. */
  readonly labels?: readonly string[];
  readonly ephemeral?: boolean;
}

/** What keeps the worker from using that credential there. */
export function credentialError(
  ciServers: CiServers,
  { credential, ciServer, scope, runnerGroup, labels, ephemeral }: CredentialUse,
): string | undefined {
  if (scope === undefined) return undefined;
  try {
    // Calls with a credential run on its own task queue, which nobody polls when no worker knows it: they would wait in silence.
    const server = ciServers.get(credential);
    if (ciServer !== undefined && server.kind !== ciServer)
      return `credential "${credential}" is for a ${server.kind} server, but ciServer is "${ciServer}"; name a credential whose server is "${ciServer}"`;
    if (server.traits.groups === undefined && (runnerGroup ?? 'default') !== 'default')
      return 'the CI server has no runner groups; remove runnerGroup and runnerGroupId';
    const mode =
      ephemeral === undefined ? undefined : registrationModeFor(server.traits, ephemeral);
    return server.accessError?.(scope, runnerGroup, omitUndefined({ labels, mode }));
  } catch (error) {
    if (error instanceof UnknownCredentialError) return error.message;
    throw error;
  }
}

/** Returns the traits of the CI server. `undefined`: no CI server is asked. @throws UnknownCredentialError */
export function ciServerTraits(
  ciServers: CiServers,
  { credential, scope }: Pick<CredentialUse, 'credential' | 'scope'>,
): CiServerTraits | undefined {
  return scope === undefined ? undefined : ciServers.get(credential).traits;
}

/** What a runner's workflow has to know of the traits. They are the worker's own: no input has a field for them. */
export function traitsForRunner(
  traits: CiServerTraits | undefined,
  ephemeral: boolean,
): Pick<AdmittedRunner, 'removalEndsJob'> & Partial<Pick<AdmittedRunner, 'registrationMode'>> {
  if (traits === undefined) return {};
  return {
    registrationMode: registrationModeFor(traits, ephemeral),
    ...(removalEndsJob(traits) ? { removalEndsJob: true as const } : {}),
  };
}
