import { describe, test } from '@jest/globals';
import {
  ComponentUnavailableError,
  TEMPORAL_SERVERS,
  up,
  type LabOptions,
  type LabState,
  type TemporalServer,
} from '../../tools/lab/lab.ts';
import { testLabFolder } from './labFolder.ts';
import { isRequired, tiersOf, type LabNeeds } from './labNeeds.ts';

export type { LabNeeds } from './labNeeds.ts';

/**
 * Brings up what a test needs, and keeps it for the whole run (globalTeardown takes it down). Quick when it is up.
 * A test that stops components uses a lab in a folder of its own, since other files use this one.
 */
export function ensureLab(needs: LabNeeds): Promise<LabState> {
  const options: LabOptions = {
    stateDir: testLabFolder(needs.nodes),
    temporal: needs.temporal === true && temporalServer(process.env['HOLDFAST_TEST_TEMPORAL']),
    kubernetes: needs.kubernetes ?? needs.nodes !== undefined,
    s3: needs.s3 ?? false,
    gitea: needs.gitea ?? false,
    progress: (line) => process.stderr.write(`[lab] ${line}\n`),
  };
  return up(needs.nodes === undefined ? options : { ...options, nodes: needs.nodes });
}

/** HOLDFAST_TEST_TEMPORAL: on which of Temporal's servers the tests run. @default dev */
function temporalServer(wanted = 'dev'): TemporalServer {
  const server = TEMPORAL_SERVERS.find((each) => each === wanted);
  if (server === undefined)
    throw new Error(
      `HOLDFAST_TEST_TEMPORAL=${wanted} is not one of ${TEMPORAL_SERVERS.join(', ')}`,
    );
  return server;
}

/**
 * `describe` for suites on real components: `await describeWithLab('…', { temporal: true }, (lab) => { test(…) })`.
 *
 * Where a component cannot be had on this machine, the suite is skipped and says why, unless HOLDFAST_REQUIRE names its tier:
 * then it fails. A component that is there but does not start always fails.
 */
export async function describeWithLab(
  name: string,
  needs: LabNeeds,
  body: (lab: LabState) => void,
): Promise<void> {
  await describeIf(name, () => ensureLab(needs), needs, body);
}

/** {@link describeWithLab} with any preparation; it says by a ComponentUnavailableError that something cannot be had. */
export async function describeIf<T>(
  name: string,
  prepare: () => Promise<T>,
  needs: LabNeeds,
  body: (prepared: T) => void,
): Promise<void> {
  let prepared: T;
  try {
    prepared = await prepare();
  } catch (error) {
    if (
      !(error instanceof ComponentUnavailableError) ||
      isRequired(needs, process.env['HOLDFAST_REQUIRE'])
    )
      throw error;
    process.stderr.write(`SKIPPED ${name}: ${error.message}\n`);
    describe(name, () => {
      // oxlint-disable-next-line jest/no-disabled-tests -- skipping, visibly, is this function's job
      test.skip(`needs ${tiersOf(needs).join(' + ')}: ${error.message.split('\n')[0] ?? ''}`, () =>
        undefined);
    });
    return;
  }
  describe(name, () => {
    body(prepared);
  });
}
