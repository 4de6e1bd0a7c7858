/** Which parts of a pod policy have to allow something before a set's pods may be. Pure. */
import { GITHUB_RUNNER } from '../../core/domain/runnerKinds/gitHub.ts';
import { podSpec } from '../../activities/compute/kubernetes/podSpec.ts';
import { DEFAULT_POD_POLICY } from '../../activities/compute/kubernetes/podPolicy/podPolicy.ts';
import { toPolicyInput } from '../../activities/compute/kubernetes/podPolicy/policyViolations.ts';
import { POD_RULES } from '../../activities/compute/kubernetes/podPolicy/podRules.ts';
import { ComputeError } from '../../activities/ports.ts';
import type { PodRequest } from '../../core/domain/pod.ts';

const DEFAULTS = {
  image: GITHUB_RUNNER.image.name,
  command: GITHUB_RUNNER.image.command,
  user: GITHUB_RUNNER.image.user,
};

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
        rule.violations(pod, DEFAULT_POD_POLICY, {
          images: [GITHUB_RUNNER.image.name],
          namespace: '',
        }).length > 0,
    ).map(({ field }) => field);
  } catch (error) {
    // As the worker judges a template that is anybody's text.
    if (error instanceof TypeError || error instanceof ComputeError) return undefined;
    throw error;
  }
}
