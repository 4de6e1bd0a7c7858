/** Checks a pod against its policy, for admission and creation. Pure. */
import type { V1Pod, V1PodSpec } from '@kubernetes/client-node';
import { UNTRUSTED_VOLUME_SOURCES } from '../../../../core/domain/untrustedJobs.ts';
import { JOB_CLAIM, type PodRequest, type PodTemplate } from '../../../../core/domain/pod.ts';
import { SET_LABEL } from '../../../../core/domain/podTemplate.ts';
import { omitUndefined } from '../../../../core/domain/omitUndefined.ts';
import { withoutNulls } from '../../../../core/domain/withoutNulls.ts';
import { CREDENTIAL_ANNOTATION, SCOPE_ANNOTATION } from '../metadata.ts';
import type { PodDefaults } from '../podSpec.ts';
import type { ArtifactStoreLocation } from '../storeAccess.ts';
import { claimName } from '../../naming.ts';
import { resolveClaimName } from '../volumeClaims.ts';
import type { ImplicitlyAllowed, PodPolicy } from './podPolicy.ts';
import { toScopePattern } from './celPolicy.ts';
import { matchesAny } from './patterns.ts';
import { NOT_A_POD_SPEC } from '../notAPodSpec.ts';
import { POD_RULES } from './podRules.ts';
import type { PolicyInput } from './podRule.ts';
import { overriddenFields } from './templateOverrides.ts';

/**
 * Maximum length of the part of a pod that an error repeats (characters). No valid name is as long.
 */
const LONGEST = 500;

/**
 * Returns a sentence for each violation of the policy, with the rule and the fix. The list is empty
 * if the pod is allowed.
 */
export function policyViolations(
  pod: PolicyInput,
  policy: PodPolicy,
  own: ImplicitlyAllowed,
): string[] {
  try {
    const applicable = policyFor(pod, policy);
    return pod.untrusted
      ? refusals(pod, outsidersPolicy(applicable), own, OUTSIDERS)
      : refusals(pod, applicable, own);
  } catch (error) {
    // Anyone may have written the template. A pod that cannot be checked is not allowed.
    if (error instanceof TypeError) return [NOT_A_POD_SPEC];
    throw error;
  }
}

/** Returns the policy with the fields of the first rule that is for this pod. */
export function policyFor(
  { labels = {}, annotations = {} }: Pick<PolicyInput, 'labels' | 'annotations'>,
  policy: PodPolicy,
): PodPolicy {
  const is = (patterns: readonly string[] | undefined, mark: string | undefined): boolean =>
    patterns === undefined || (mark !== undefined && matchesAny(patterns, mark));
  const rule = policy.rules.find(
    ({ sets, scopes, credentials }) =>
      is(sets, labels[SET_LABEL]) &&
      is(scopes?.map(toScopePattern), annotations[SCOPE_ANNOTATION]) &&
      is(credentials, annotations[CREDENTIAL_ANNOTATION]),
  );
  const { sets: _sets, scopes: _scopes, credentials: _credentials, ...fields } = rule ?? {};
  return { ...policy, ...omitUndefined(fields) };
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
  field === 'namespaces'
    ? 'by HOLDFAST_NAMESPACES of the worker; leave it out, or have it added there'
    : `by "${field}" of the worker's pod policy; leave it out, or have it allowed there (HOLDFAST_POD_POLICY_FILE)`;
const OUTSIDERS = (field: string): string =>
  `in the run of an outsider's change ("${field}" of the pod policy, of which most is not for those); leave it out, also of the worker's own template`;

/**
 * Returns the policy for untrusted changes. It permits nothing that gives access to objects of
 * others, even if the policy permits that for other pods.
 */
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

/**
 * Converts a pod to the input of the policy.
 * @param home - the worker's namespace
 * @param worker - template of the worker's settings
 */
export function toPolicyInput(
  { metadata, spec }: V1Pod,
  request: PodRequest,
  home: string,
  worker?: PodTemplate,
): PolicyInput {
  const { identity, namespace, volumeClaims = [], storage, untrusted, template } = request;
  const claims = [
    ...volumeClaims
      .filter(({ claim }) => claim === undefined)
      .map((claim) => resolveClaimName(identity, claim)),
    ...(storage?.job === undefined ? [] : [claimName(storage.job, JOB_CLAIM)]),
  ];
  const made = volumeClaims.map(({ dataSource, selector, ...claim }, index) => ({
    path: `volumeClaims[${index}]`,
    name: resolveClaimName(identity, claim),
    ...omitUndefined({ dataSource, selector }),
  }));
  return {
    spec: withoutNulls(spec ?? { containers: [] }),
    labels: metadata?.labels ?? {},
    annotations: metadata?.annotations ?? {},
    ...omitUndefined({ template }),
    overridden: overriddenFields(worker, request),
    namespace: namespace ?? home,
    name: metadata?.name ?? '',
    claims,
    made,
    ...(untrusted ? { untrusted } : {}),
  };
}

/** Returns the objects of the artifact store to which a pod refers. */
export function installationStore(
  place: ArtifactStoreLocation | undefined,
): Pick<ImplicitlyAllowed, 'store' | 'storeSecret'> {
  if (place === undefined) return {};
  return 'claim' in place ? { store: place.claim } : omitUndefined({ storeSecret: place.secret });
}

/** Returns the images in the worker's settings. */
export function installationImages({ image, template, supervisor }: PodDefaults): string[] {
  const { containers = [], initContainers = [] } = (template?.spec ?? {}) as Partial<V1PodSpec>;
  return [
    image,
    supervisor?.image,
    ...[...containers, ...initContainers].map((container) => container.image),
  ].filter((name) => name !== undefined);
}
