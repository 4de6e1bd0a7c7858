/** A pod before its policy, for admission and creation. Pure. */
import type { V1Pod, V1PodSpec } from '@kubernetes/client-node';
import { UNTRUSTED_VOLUME_SOURCES } from '../../../../core/domain/untrustedJobs.ts';
import type { PodRequest } from '../../../../core/domain/pod.ts';
import { omitUndefined } from '../../../../core/domain/omitUndefined.ts';
import type { PodDefaults } from '../podSpec.ts';
import type { ArtifactStoreLocation } from '../storeAccess.ts';
import { resolveClaimName } from '../volumeClaims.ts';
import type { ImplicitlyAllowed, PodPolicy } from './podPolicy.ts';
import { POD_RULES, type PolicyInput } from './podRules.ts';

/** Of what a refusal repeats of the pod, in characters: no name that may be is as long. */
const LONGEST = 500;

/** What of a pod the policy does not allow, one sentence each, with the rule and the fix; empty for a pod that may be. */
export function policyViolations(
  pod: PolicyInput,
  policy: PodPolicy,
  own: ImplicitlyAllowed,
): string[] {
  try {
    return pod.untrusted
      ? refusals(pod, outsidersPolicy(policy), own, OUTSIDERS)
      : refusals(pod, policy, own);
  } catch (error) {
    // A starter's template is anybody's text: what cannot be judged is not allowed.
    if (error instanceof TypeError)
      return [
        `pod: a part of it does not have the shape of Kubernetes' PodSpec, and cannot be judged by the worker's pod policy; look for a list that is none, an object that is none, or a name that is no text`,
      ];
    throw error;
  }
}

function refusals(
  pod: PolicyInput,
  policy: PodPolicy,
  own: ImplicitlyAllowed,
  reason = WHY,
): string[] {
  return POD_RULES.flatMap((rule) =>
    rule
      .violations(pod, policy, own)
      .map(
        (what) =>
          `${what.length > LONGEST ? `${what.slice(0, LONGEST)} …` : what} is not allowed ${reason(rule.field)}`,
      ),
  );
}

const WHY = (field: string): string =>
  `by "${field}" of the worker's pod policy; leave it out, or have it allowed there (HOLDFAST_POD_POLICY_FILE)`;
const OUTSIDERS = (field: string): string =>
  `in the run of an outsider's change ("${field}" of the pod policy, of which most is not for those); leave it out, also of the worker's own template`;

/** Nothing by which they would get at something of others', whatever others may. */
function outsidersPolicy(policy: PodPolicy): PodPolicy {
  return {
    ...policy,
    serviceAccounts: [],
    secrets: [],
    claims: [],
    volumes: [...UNTRUSTED_VOLUME_SOURCES],
    hostPaths: [],
    host: [],
    privileged: false,
    capabilities: [],
  };
}

/** @param home - the worker's namespace */
export function toPolicyInput(
  { metadata, spec }: V1Pod,
  { identity, namespace, volumeClaims = [], untrusted }: PodRequest,
  home: string,
): PolicyInput {
  const claims = volumeClaims
    .filter(({ claim }) => claim === undefined)
    .map((claim) => resolveClaimName(identity, claim));
  const present = JSON.parse(JSON.stringify(spec), (_field, value: unknown) =>
    value === null ? undefined : value,
  ) as V1PodSpec;
  const made = volumeClaims.map(({ dataSource, selector, ...claim }, index) => ({
    path: `volumeClaims[${index}]`,
    name: resolveClaimName(identity, claim),
    ...omitUndefined({ dataSource, selector }),
  }));
  return {
    spec: present,
    namespace: namespace ?? home,
    name: metadata?.name ?? '',
    claims,
    made,
    ...(untrusted ? { untrusted } : {}),
  };
}

/** Of the store what a pod refers to. */
export function installationStore(
  place: ArtifactStoreLocation | undefined,
): Pick<ImplicitlyAllowed, 'store' | 'storeSecret'> {
  if (place === undefined) return {};
  return 'claim' in place ? { store: place.claim } : omitUndefined({ storeSecret: place.secret });
}

/** The images that the worker's settings name. */
export function installationImages({ image, template, supervisor }: PodDefaults): string[] {
  const { containers = [], initContainers = [] } = (template?.spec ?? {}) as Partial<V1PodSpec>;
  return [
    image,
    supervisor?.image,
    ...[...containers, ...initContainers].map((container) => container.image),
  ].filter((name) => name !== undefined);
}
