import type { ConfigProblem } from './configError.ts';

/** Kubernetes puts `<SERVICE>_SERVICE_HOST`, `<SERVICE>_PORT_8080_TCP` and the like into every pod for each Service of its namespace. */
const SERVICE_LINK = /_SERVICE_HOST$|_SERVICE_PORT(_|$)|_PORT$|_PORT_\d+_(TCP|UDP|SCTP)(_|$)/;
/** What the supervisor, the lab and the command-line tool read. */
const NOT_THE_PROCESS =
  /^HOLDFAST_(STOP_REASON$|POD_UID$|TEMPORAL_UI$|REQUIRE$|LAB_|TEST_|DEMO_|BENCH_|CACHE)/;

/** What is set and not read: a slip of the pen, mostly. @param known - names of the settings that are read @param process - that reads them */
export function unknownSettings(
  set: Readonly<Record<string, string | undefined>>,
  known: readonly string[],
  process: 'worker' | 'webhook',
): ConfigProblem[] {
  return Object.keys(set)
    .filter(
      (name) =>
        name.startsWith('HOLDFAST_') &&
        !known.includes(name) &&
        !SERVICE_LINK.test(name) &&
        !NOT_THE_PROCESS.test(name),
    )
    .map((setting) => ({
      setting,
      message: `is no setting of the ${process}: check its spelling against docs/configuration.md${process === 'webhook' ? ', or leave it out' : ''}`,
    }));
}
