/**
 * Data besides the values from which templates/_policy.tpl of the chart creates the admission
 * policies.
 */
import {
  ADMISSION_RULES,
  JOB_POD_ADMISSION_RULES,
  JOB_POD_ALLOWANCES,
} from '../../activities/compute/kubernetes/podPolicy/admissionPolicy.ts';
import {
  POLICY_CEL_FIELDS,
  SELECTOR_CEL,
} from '../../activities/compute/kubernetes/podPolicy/celPolicy.ts';
import { DEFAULT_POD_POLICY } from '../../activities/compute/kubernetes/podPolicy/podPolicy.ts';
import { GITHUB_RUNNER } from '../../core/domain/runnerKinds/gitHub.ts';

/** Returns the text of deploy/chart/files/admission-policy.json. */
export function admissionPolicyText(): string {
  const file = {
    defaults: DEFAULT_POD_POLICY,
    runnerImage: GITHUB_RUNNER.image.name,
    order: POLICY_CEL_FIELDS,
    selectors: SELECTOR_CEL,
    kinds: ADMISSION_RULES,
    jobPodKinds: JOB_POD_ADMISSION_RULES,
    jobPodAllowances: JOB_POD_ALLOWANCES,
  };
  return `${JSON.stringify(file, undefined, 2)}\n`;
}
