/** Which parts of a pod policy have to allow something before a set's pods may be. Pure. */
import { podSpec } from '../../activities/compute/kubernetes/podSpec.ts';
import { DEFAULT_POD_POLICY } from '../../activities/compute/kubernetes/podPolicy/podPolicy.ts';
import { toPolicyInput } from '../../activities/compute/kubernetes/podPolicy/policyViolations.ts';
import { POD_RULES } from '../../activities/compute/kubernetes/podPolicy/podRules.ts';
import { ComputeError } from '../../activities/ports.ts';
import type { PodRequest } from '../../core/domain/pod.ts';
import {
  RUNNER_IMAGE,
  RUNNER_IMAGE_COMMAND,
  RUNNER_IMAGE_USER,
} from '../../worker/settings/runnerImage.ts';

const DEFAULTS = { image: RUNNER_IMAGE, command: RUNNER_IMAGE_COMMAND, user: RUNNER_IMAGE_USER };

/** Beyond what is allowed without one. @returns fields of the policy; `undefined`: it is no pod that could be judged */
export function policyNeeds({
  supervision: _supervision,
  ...request
}: Omit<PodRequest, 'identity'>): string[] | undefined {
  const asked: PodRequest = {
    ...request,
    identity: { workflowId: '', firstRunId: '', attempt: 1 },
  };
  try {
    const pod = toPolicyInput(podSpec(asked, DEFAULTS, '', undefined), asked, '');
    return POD_RULES.filter(
      (rule) =>
        rule.refused(pod, DEFAULT_POD_POLICY, { images: [RUNNER_IMAGE], namespace: '' }).length > 0,
    ).map(({ field }) => field);
  } catch (error) {
    // As the worker judges a template that is anybody's text.
    if (error instanceof TypeError || error instanceof ComputeError) return undefined;
    throw error;
  }
}
