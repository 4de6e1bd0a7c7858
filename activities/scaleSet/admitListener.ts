import { createHash } from 'node:crypto';
import type { AdmittedListener } from '../../core/activities/index.ts';
import type { ScaleSetListenerInput } from '../../core/contract/index.ts';
import { listenerSchema } from '../../core/input/activityInputs.ts';
import { parseInput } from '../../core/input/fields.ts';
import { UnknownCredentialError, type CiServers } from '../ports/ciServer.ts';
import type { ActivityPorts } from '../ports/activityPorts.ts';
import { invalidInput } from '../shared/invalidInput.ts';

/**
 * Checks the input of a listener. Its calls are checked again where they are made, because anyone
 * who may start a workflow can call the activities.
 * @throws ApplicationFailure `InvalidInput` (non-retryable), which lists every invalid field
 */
export function admitListener(
  { ciServers }: Pick<ActivityPorts, 'ciServers'>,
  input: unknown,
): AdmittedListener {
  const parsed = parseInput(listenerSchema, input);
  if (!parsed.ok) throw invalidInput(parsed.errors);
  const { credential, scope, group, labels, name } = parsed.spec;
  const fault = accessError(ciServers, credential, (server) =>
    server.scaleSets === undefined
      ? `credential "${credential}" is for a CI server without scale sets`
      : server.accessError?.(scope, group, { labels: [...labels, name], mode: 'jit' }),
  );
  if (fault !== undefined)
    throw invalidInput([{ code: 'denied', field: 'credential', message: fault }]);
  return { listener: parsed.spec, hash: listenerHash(parsed.spec) };
}

/**
 * Returns the error of a check. An unknown credential is no error here, because another worker may
 * have it.
 */
function accessError(
  ciServers: CiServers,
  credential: string,
  check: (server: ReturnType<CiServers['get']>) => string | undefined,
): string | undefined {
  try {
    return check(ciServers.get(credential));
  } catch (error) {
    if (error instanceof UnknownCredentialError) return undefined;
    throw error;
  }
}

/** Returns a hash of a listener's input that does not depend on the order of its fields. */
export function listenerHash(input: ScaleSetListenerInput): string {
  const { set, scope, credential, group, labels, name, adopt = false } = input;
  const text = JSON.stringify([
    set,
    [scope.kind, scope.name],
    credential,
    group,
    labels.toSorted(),
    name,
    adopt,
  ]);
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
