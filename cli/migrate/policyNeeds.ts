/** Determines what the cluster and the worker must allow for the pods of a set. Pure. */
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

/** Permissions that the pods of a set need. */
export interface PodNeeds {
  /** Fields that the worker's pod policy must allow in addition to its defaults. */
  readonly policy: readonly string[];
  readonly security: PodSecurity;
}

/**
 * Returns the permissions that a pod needs.
 * @returns `undefined` if the pod is invalid
 */
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
