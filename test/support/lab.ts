import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from '@jest/globals';
import {
  ComponentUnavailableError,
  TEMPORAL_SERVERS,
  up,
  type LabOptions,
  type LabState,
  type TemporalServer,
} from '../../tools/lab/lab.ts';
import { withLock } from '../../tools/lab/lock.ts';
import { testLabFolder } from './labFolder.ts';
import { isRequired, tiersOf, type LabNeeds } from './labNeeds.ts';

export type { LabNeeds } from './labNeeds.ts';

/**
 * Starts the components that a test needs and keeps them for the whole run (globalTeardown stops
 * them). Fast if they run. A test that stops components uses a lab in a folder of its own, because
 * other files use this one.
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

/** HOLDFAST_TEST_TEMPORAL: the Temporal server of the tests. @default dev */
function temporalServer(wanted = 'dev'): TemporalServer {
  const server = TEMPORAL_SERVERS.find((each) => each === wanted);
  if (server === undefined)
    throw new Error(
      `HOLDFAST_TEST_TEMPORAL=${wanted} is not one of ${TEMPORAL_SERVERS.join(', ')}`,
    );
  return server;
}

/**
 * `describe` for suites on real components: `await describeWithLab('...', { temporal: true }, (lab)
 * => { test(...) })`.
 *
 * If a component is not available on this machine, the suite is skipped with the reason, unless
 * HOLDFAST_REQUIRE names its tier: then it fails. A component that is available but does not start
 * always fails.
 */
export async function describeWithLab(
  name: string,
  needs: LabNeeds,
  body: (lab: LabState) => void,
): Promise<void> {
  await describeIf(
    name,
    () => ensureLab(needs),
    needs,
    (lab) => {
      if (needs.gitea === true) alone(join(lab.stateDir, 'gitea-tests.lock'), () => body(lab));
      else body(lab);
    },
  );
}

/** Maximum time that a suite waits for the other suites of its kind (ms). */
const ALONE_WITHIN_MS = 900_000;

/**
 * Runs a suite exclusively among those with the same lock. All files share one Gitea, and each
 * clears it.
 */
function alone(lock: string, body: () => void): void {
  let release: () => void = () => undefined;
  let held: Promise<void> | undefined;
  beforeAll(async () => {
    await new Promise<void>((acquired, failed) => {
      const suite = async (): Promise<void> => {
        acquired();
        await new Promise<void>((resolve) => (release = resolve));
      };
      held = withLock(lock, suite);
      held.catch(failed);
    });
  }, ALONE_WITHIN_MS);
  body();
  // After the hooks of the suite, which also clear Gitea.
  afterAll(async () => {
    release();
    await held;
  });
}

/**
 * {@link describeWithLab} with any preparation, which throws a ComponentUnavailableError if
 * something is not available.
 */
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
      // oxlint-disable-next-line jest/no-disabled-tests -- skips suites, with a reason
      test.skip(`needs ${tiersOf(needs).join(' + ')}: ${error.message.split('\n')[0] ?? ''}`, () =>
        undefined);
    });
    return;
  }
  describe(name, () => {
    body(prepared);
  });
}
