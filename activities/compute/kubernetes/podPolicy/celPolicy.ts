/**
 * A pod policy as the CEL expression of a map, which the rules of the admission policy read. The
 * chart writes the same map from its values (deploy/chart/templates/_policy.tpl). Pure.
 */
import { SET_LABEL } from '../../../../core/domain/podTemplate.ts';
import { CREDENTIAL_ANNOTATION, SCOPE_ANNOTATION } from '../metadata.ts';
import { patternSource } from './patterns.ts';
import type { ImplicitlyAllowed, PodPolicy, PolicyRule } from './podPolicy.ts';
import { toPairPattern, withContent } from './podRules.ts';
import { trimmed } from './nodeRules.ts';

/** Expressions of what a rule selects by, from the marks that the worker puts on a pod. */
export const SELECTOR_CEL = {
  sets: markCel('labels', SET_LABEL),
  scopes: markCel('annotations', SCOPE_ANNOTATION),
  credentials: markCel('annotations', CREDENTIAL_ANNOTATION),
} as const;

function markCel(part: 'labels' | 'annotations', key: string): string {
  const name = JSON.stringify(key);
  const pairs = `object.metadata.${part}`;
  return `(has(${pairs}) && ${name} in ${pairs} ? ${pairs}[${name}] : "")`;
}

const regexes = (patterns: readonly string[]): string[] =>
  patterns.map((pattern) => `(?s)${patternSource([pattern])}`);

/** Converts a pattern of a scope to one of {@link SCOPE_ANNOTATION}. */
export function toScopePattern(scope: string): string {
  if (scope.startsWith('enterprises/')) return scope.replace('enterprises/', 'enterprise/');
  return scope === '*' ? '*' : `${scope.includes('/') ? 'repository' : 'organization'}/${scope}`;
}

/** How each field of the policy is written for the rules. Absent: the API server has no rule. */
const FIELDS: {
  readonly [F in keyof PodPolicy]?: (value: PodPolicy[F], own: ImplicitlyAllowed) => unknown;
} = {
  images: (images, own) => regexes([...images, ...own.images]),
  serviceAccounts: regexes,
  secrets: regexes,
  claims: regexes,
  volumes: (volumes) => volumes,
  hostPaths: (paths) => paths.map(trimmed),
  host: (host) => host,
  userNamespaces: (userNamespaces) => userNamespaces,
  privileged: (privileged) => privileged,
  capabilities: regexes,
  runtimeClasses: regexes,
  priorityClasses: regexes,
  nodeSelectors: (selectors) => regexes(selectors.map(toPairPattern)),
  tolerations: (tolerations) => regexes(tolerations.map(toPairPattern)),
  labels: (labels) => regexes(labels.map(toPairPattern)),
  annotations: (annotations) => regexes(annotations.map(toPairPattern)),
  fields: (fields) => regexes(withContent(fields)),
  resources: (resources) => resources,
};

/** Names of the fields in `variables.policy`, in their order. */
export const POLICY_CEL_FIELDS: readonly string[] = [
  ...Object.keys(FIELDS),
  'namespaces',
  'store',
  'storeSecret',
];

/**
 * Returns the expression of `variables.policy`. With rules, it depends on the marks of the pod,
 * which any holder of the worker's token can choose.
 */
export function policyCel(policy: PodPolicy, own: ImplicitlyAllowed): string {
  const base = mapCel(policy, own);
  return policy.rules
    .toReversed()
    .reduce(
      (otherwise, { sets, scopes, credentials, ...fields }) =>
        `${selectorCel({ sets, scopes, credentials })} ? ${mapCel({ ...policy, ...fields }, own)} : (${otherwise})`,
      base,
    );
}

function selectorCel({
  sets,
  scopes,
  credentials,
}: { [S in 'sets' | 'scopes' | 'credentials']: PolicyRule[S] | undefined }): string {
  const selectors = { sets, scopes: scopes?.map(toScopePattern), credentials };
  return Object.entries(selectors)
    .flatMap(([name, patterns]) =>
      patterns === undefined
        ? []
        : [
            `${JSON.stringify(regexes(patterns))}.exists(p, ${SELECTOR_CEL[name as keyof typeof SELECTOR_CEL]}.matches(p))`,
          ],
    )
    .join(' && ');
}

/**
 * Returns the policy as a CEL map, parsed from JSON. A CEL map has values of one type unless they
 * are `dyn`.
 */
function mapCel(policy: Omit<PodPolicy, 'rules'>, own: ImplicitlyAllowed): string {
  const values = {
    ...Object.fromEntries(
      Object.entries(FIELDS).map(([field, write]) => [
        field,
        (write as (value: unknown, own: ImplicitlyAllowed) => unknown)(
          policy[field as keyof typeof policy],
          own,
        ),
      ]),
    ),
    namespaces: own.namespaces,
    store: own.store ?? '',
    storeSecret: own.storeSecret ?? '',
  };
  return `{${Object.entries(values)
    .map(([name, value]) => `"${name}": dyn(${JSON.stringify(value)})`)
    .join(', ')}}`;
}
