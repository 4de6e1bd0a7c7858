/**
 * Finds values in a runner's input that should not be readable by everyone who can read Temporal.
 * Pure.
 */
import type { RunnerInput } from '../contract/index.ts';
import { isObject } from '../domain/isObject.ts';

/** Maximum number of names in one warning. */
const MAX_NAMES = 20;

/** Names of variables whose values are usually secret. */
const SECRET_NAME = /TOKEN|KEY|SECRET|PASSWORD|PASSWD|CREDENTIAL/i;
/** Names of variables with the location of a secret. */
const LOCATION_NAME = /_(FILE|PATH|DIR)$/i;

/**
 * Returns warnings for an input that is stored in Temporal as plaintext. They never contain the
 * values.
 * @param input - valid input, or the template of a valid set
 */
export function plaintextWarnings({ env = {}, pod }: Pick<RunnerInput, 'env' | 'pod'>): string[] {
  const { containers, initContainers } = pod?.spec ?? {};
  const written = [...objectsOf(containers), ...objectsOf(initContainers)]
    .flatMap(({ env: variables }) => objectsOf(variables))
    .filter(({ value }) => typeof value === 'string' && value !== '');
  const names = [
    ...new Set(
      [
        ...Object.keys(env).filter((name) => env[name] !== ''),
        ...written.map(({ name }) => String(name)),
      ].filter((name) => SECRET_NAME.test(name) && !LOCATION_NAME.test(name)),
    ),
  ];
  if (names.length === 0) return [];
  const shown =
    names.length > MAX_NAMES
      ? `${names.slice(0, MAX_NAMES).join(', ')} and ${names.length - MAX_NAMES} more`
      : names.join(', ');
  return [
    `env: ${shown} ${names.length === 1 ? 'is' : 'are'} stored in Temporal in clear text; take secrets from a Secret (valueFrom.secretKeyRef in the env of the container "runner" in pod.spec.containers), or encrypt all payloads (HOLDFAST_CODEC_KEY_FILE)`,
  ];
}

/** Returns the objects of a list. The input may have another value in its place. */
const objectsOf = (list: unknown): Readonly<Record<string, unknown>>[] =>
  Array.isArray(list) ? list.filter(isObject) : [];
