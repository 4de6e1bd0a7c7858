import type { ConfigProblem } from './configError.ts';
import { settings } from './settings.ts';

/**
 * Variables such as `<SERVICE>_SERVICE_HOST` and `<SERVICE>_PORT_8080_TCP`, which Kubernetes adds
 * to every pod for each Service of its namespace.
 */
const SERVICE_LINK = /_SERVICE_HOST$|_SERVICE_PORT(_|$)|_PORT$|_PORT_\d+_(TCP|UDP|SCTP)(_|$)/;
/** Settings that the supervisor, the lab and the command-line tool read. */
const OTHER_READERS =
  /^HOLDFAST_(STOP_REASON$|POD_UID$|TEMPORAL_UI$|REQUIRE$|LAB_|TEST_|DEMO_|BENCH_|CACHE)/;

/**
 * Returns a problem for each variable with the prefix `HOLDFAST_` that nothing reads. A misspelt
 * name of a setting that protects something must not go unnoticed.
 * @param named - variables that other settings name, such as `tokenEnv` of a credential
 */
export function unknownSettings(
  set: Readonly<Record<string, string | undefined>>,
  named: readonly string[] = [],
): ConfigProblem[] {
  const known = new Set([...Object.keys(settings.shape), ...named]);
  return Object.keys(set)
    .filter(
      (name) =>
        name.startsWith('HOLDFAST_') &&
        !known.has(name) &&
        !SERVICE_LINK.test(name) &&
        !OTHER_READERS.test(name),
    )
    .map((setting) => ({
      setting,
      message: 'is not a setting of Holdfast; check its spelling in docs/configuration.md',
    }));
}

/**
 * Returns a warning for each setting of the worker that this process does not read.
 * @param read - names of the settings that it reads
 */
export function unreadSettings(
  set: Readonly<Record<string, string | undefined>>,
  read: readonly string[],
): ConfigProblem[] {
  return Object.keys(settings.shape)
    .filter((name) => name.startsWith('HOLDFAST_') && set[name] !== undefined)
    .filter((name) => !read.includes(name))
    .map((setting) => ({
      setting,
      message: 'is a setting of the worker, which this process does not read: leave it out',
    }));
}
