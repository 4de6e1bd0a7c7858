/** Determines the permissions of the cluster and the worker that the pods of a set need. Pure. */
import { GITHUB_RUNNER } from '../../core/domain/runnerKinds/gitHub.ts';
import { podSpec } from '../../activities/compute/kubernetes/podSpec.ts';
import {
  DEFAULT_POD_POLICY,
  type PodPolicy,
} from '../../activities/compute/kubernetes/podPolicy/podPolicy.ts';
import { toPolicyInput } from '../../activities/compute/kubernetes/podPolicy/policyViolations.ts';
import { parseQuantity } from '../../activities/compute/kubernetes/podPolicy/quantity.ts';
import { BASIC_RESOURCES } from '../../activities/compute/kubernetes/podPolicy/resourceRule.ts';
import { POD_RULES } from '../../activities/compute/kubernetes/podPolicy/podRules.ts';
import type { PolicyInput } from '../../activities/compute/kubernetes/podPolicy/podRule.ts';
import { ComputeError } from '../../activities/ports/computeError.ts';
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
  /**
   * Values of these fields for the pod policy. A field whose value does not follow from the pod is
   * left out.
   */
  readonly podPolicy: Partial<PodPolicy>;
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
    const broken = POD_RULES.filter((rule) => violationsOf(rule, pod, {}).length > 0);
    return {
      policy: broken.map(({ field }) => field),
      podPolicy: Object.assign(
        {},
        ...broken.map((rule) => allowance(rule, pod)),
      ) as Partial<PodPolicy>,
      security: podSecurity(made.spec ?? { containers: [] }),
    };
  } catch (error) {
    // The worker rejects a malformed template with the same errors.
    if (error instanceof TypeError || error instanceof ComputeError) return undefined;
    throw error;
  }
}

type Rule = (typeof POD_RULES)[number];

function violationsOf(rule: Rule, pod: PolicyInput, more: Partial<PodPolicy>): string[] {
  const implicit = { images: [GITHUB_RUNNER.image.name], namespaces: [''] };
  return rule.violations(pod, { ...DEFAULT_POD_POLICY, ...more }, implicit);
}

/** Returns the value of a policy field that allows the pod. Empty if there is none. */
function allowance(rule: Rule, pod: PolicyInput): Partial<PodPolicy> {
  const { field } = rule;
  // No policy allows another namespace, and the pod is in the worker's own.
  if (field === 'namespaces') return {};
  if (field === 'resources') return { resources: otherResources(pod) };
  const allowed = DEFAULT_POD_POLICY[field];
  const names = violationsOf(rule, pod, {}).flatMap((text) => namesIn(text, field));
  const value =
    typeof allowed === 'boolean'
      ? true
      : [...new Set([...(Array.isArray(allowed) ? allowed : []), ...names])];
  const more: Partial<PodPolicy> = { [field]: value };
  return violationsOf(rule, pod, more).length === 0 ? more : {};
}

/** Returns the largest quantity of each resource that not all clusters have, such as a GPU. */
function otherResources({ spec }: PolicyInput): Record<string, string> {
  const asked = [...(spec.initContainers ?? []), ...spec.containers].flatMap(({ resources }) =>
    [resources?.requests, resources?.limits].flatMap((list) =>
      Object.entries((list ?? {}) as Record<string, unknown>),
    ),
  );
  const largest = new Map<string, string>();
  for (const [name, quantity] of asked) {
    const before = parseQuantity(largest.get(name)) ?? -1;
    if (!BASIC_RESOURCES.includes(name) && (parseQuantity(quantity) ?? 0) > before)
      largest.set(name, String(quantity));
  }
  return Object.fromEntries(largest);
}

/** Returns the names that a violation contains. */
function namesIn(text: string, field: string): string[] {
  if (field === 'host') {
    const name = /the node's (\w+)$/.exec(text)?.[1];
    return [name ?? 'network'];
  }
  const listed = / of the kind (\S+)$/.exec(text)?.[1] ?? /capabilities: (\S+)$/.exec(text)?.[1];
  if (listed !== undefined) return listed.split(',');
  return [...text.matchAll(/"([^"]+)"/g)].map(([, name = '']) => name);
}
