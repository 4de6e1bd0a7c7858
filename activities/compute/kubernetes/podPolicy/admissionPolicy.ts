/**
 * The pod policy as ValidatingAdmissionPolicies. The API server enforces it on the worker's service
 * account, so it also applies to someone who has stolen the worker's token.
 */
import type {
  V1ValidatingAdmissionPolicy,
  V1ValidatingAdmissionPolicyBinding,
} from '@kubernetes/client-node';
import type { ImplicitlyAllowed, PodPolicy } from './podPolicy.ts';
import { POD_RULES, hasNoDataSource } from './podRules.ts';

/** Options of {@link admissionPolicy}. */
export interface AdmissionPolicyOptions {
  /** Name of the first policy and its binding. The second pair adds `-claims`. */
  readonly name: string;
  /**
   * Service account of the worker, as `namespace/name`. A label of the pod would not do: its author
   * could leave it out.
   */
  readonly serviceAccount: string;
}

/**
 * Returns ValidatingAdmissionPolicies and their bindings. They enforce the pod policy on pods and
 * claims that this service account creates, in every namespace.
 * https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/ (Kubernetes
 * 1.30 or newer)
 */
export function admissionPolicy(
  policy: PodPolicy,
  own: ImplicitlyAllowed,
  { name, serviceAccount }: AdmissionPolicyOptions,
): [...AdmissionPair, ...AdmissionPair] {
  const user = `system:serviceaccount:${serviceAccount.replace('/', ':')}`;
  const claims = {
    field: 'claims',
    expression: hasNoDataSource('object.spec', 'object.metadata.name', policy.claims),
  };
  return [
    ...policyFor(
      'pods',
      POD_RULES.map(({ field, cel }) => ({ field, expression: cel(policy, own) })),
      { name, user },
    ),
    ...policyFor('persistentvolumeclaims', [claims], { name: `${name}-claims`, user }),
  ];
}

type AdmissionPair = [V1ValidatingAdmissionPolicy, V1ValidatingAdmissionPolicyBinding];

function policyFor(
  resource: string,
  rules: readonly { readonly field: string; readonly expression: string }[],
  { name, user }: { readonly name: string; readonly user: string },
): AdmissionPair {
  return [
    {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name },
      spec: {
        failurePolicy: 'Fail',
        matchConstraints: {
          resourceRules: [
            { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: [resource] },
          ],
        },
        matchConditions: [
          {
            name: 'by-the-worker',
            expression: `request.userInfo.username == ${JSON.stringify(user)}`,
          },
        ],
        validations: rules.map(({ field, expression }) => ({
          expression,
          message: `not allowed by "${field}" of Holdfast's pod policy`,
          reason: 'Forbidden',
        })),
      },
    },
    {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata: { name },
      spec: { policyName: name, validationActions: ['Deny'] },
    },
  ];
}
