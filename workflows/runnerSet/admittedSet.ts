import type { AdmittedSet, SetAdmission } from '../../core/activities/index.ts';
import type { RunnerSetInput } from '../../core/contract/index.ts';

/**
 * Returns the set with the declaration that was admitted. The admission does not return the
 * declaration, because its template may have 256 KiB.
 */
export function admittedSet(
  { spec, ...admission }: SetAdmission,
  declaration: RunnerSetInput,
): AdmittedSet {
  return { ...admission, declaration, spec: { ...spec, template: declaration.template } };
}
