/** The same policy for the API server, which holds the worker's service account to it: so it also holds for who has stolen the worker's token. */
import type { V1ValidatingAdmissionPolicy, V1ValidatingAdmissionPolicyBinding } from '@kubernetes/client-node';
import type { OwnParts, PodPolicy } from './podPolicy.ts';
import { POD_RULES } from './podRules.ts';

export interface AdmissionPolicyOptions {
  /** Name of the two objects. */
  readonly name: string;
  /** The worker's, as `namespace/name`. Not a label of the pod, which its author could leave out. */
  readonly serviceAccount: string;
}

/**
 * A ValidatingAdmissionPolicy and its binding: pods that this service account creates, in whatever namespace, are as the policy says.
 * https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/ (Kubernetes 1.30 or newer)
 */
export function admissionPolicy(policy: PodPolicy, own: OwnParts, { name, serviceAccount }: AdmissionPolicyOptions): [V1ValidatingAdmissionPolicy, V1ValidatingAdmissionPolicyBinding] {
  const user = `system:serviceaccount:${serviceAccount.replace('/', ':')}`;
  return [
    {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name },
      spec: {
        failurePolicy: 'Fail',
        matchConstraints: { resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }] },
        matchConditions: [{ name: 'by-the-worker', expression: `request.userInfo.username == ${JSON.stringify(user)}` }],
        validations: POD_RULES.map(({ field, cel }) => ({ expression: cel(policy, own), message: `not allowed by "${field}" of Holdfast's pod policy`, reason: 'Forbidden' })),
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
