import { ComponentUnavailableError } from '../../../tools/lab/lab.ts';
import { resolveBinary } from '../../../tools/lab/resolve.ts';
import type { BinaryName } from '../../../tools/lab/versions.ts';
import { isRequired, type LabNeeds } from '../labNeeds.ts';

/**
 * Downloads or builds the components of a tier before its first test, so that no test waits for a
 * compiler. A component that is not available fails the run if HOLDFAST_REQUIRE names it; otherwise
 * its suites are skipped.
 */
export async function fetchComponents(
  needs: LabNeeds,
  components: readonly BinaryName[],
): Promise<void> {
  for (const component of components) {
    try {
      await resolveBinary(component, { progress });
    } catch (error) {
      if (
        !(error instanceof ComponentUnavailableError) ||
        isRequired(needs, process.env['HOLDFAST_REQUIRE'])
      )
        throw error;
      progress(`${error.message}\n  its tests are skipped`);
    }
  }
}

function progress(line: string): void {
  process.stderr.write(`[lab] ${line}\n`);
}
