/** What a cluster and a worker have to allow before a set's pods may be. Pure. */
import { GITHUB_RUNNER } from '../../core/domain/runnerKinds/gitHub.ts';
import { podSpec } from '../../activities/compute/kubernetes/podSpec.ts';
import { DEFAULT_POD_POLICY } from '../../activities/compute/kubernetes/podPolicy/podPolicy.ts';
import { toPolicyInput } from '../../activities/compute/kubernetes/podPolicy/policyViolations.ts';
import { POD_RULES } from '../../activities/compute/kubernetes/podPolicy/podRules.ts';
import { ComputeError } from '../../activities/ports.ts';
import { podSecurity, type PodSecurity } from './podSecurityLevel.ts';
import type { PodRequest } from '../../core/domain/pod.ts';

const DEFAULTS = {
  image: GITHUB_RUNNER.image.name,
  command: GITHUB_RUNNER.image.command,
  user: GITHUB_RUNNER.image.user,
};

export interface PodNeeds {
  /** Fields of the worker's pod policy that have to allow more than without one. */
  readonly policy: readonly string[];
  readonly security: PodSecurity;
}

/** Returns `undefined` if it is no pod that could be judged. */
export function podNeeds({
  supervision: _supervision,
  ...request
}: Omit<PodRequest, 'identity'>): PodNeeds | undefined {
  const asked: PodRequest = {
    ...request,
    identity: { workflowId: '', firstRunId: '', attempt: 1 },
  };
  try {
    const made = podSpec(asked, DEFAULTS, '', undefined);
    const pod = toPolicyInput(made, asked, '');
    const policy = POD_RULES.filter(
      (rule) =>
        rule.violations(pod, DEFAULT_POD_POLICY, {
          images: [GITHUB_RUNNER.image.name],
          namespace: '',
        }).length > 0,
    ).map(({ field }) => field);
    return { policy, security: podSecurity(made.spec ?? { containers: [] }) };
  } catch (error) {
    // As the worker judges a template that is anybody's text.
    if (error instanceof TypeError || error instanceof ComputeError) return undefined;
    throw error;
  }
}
