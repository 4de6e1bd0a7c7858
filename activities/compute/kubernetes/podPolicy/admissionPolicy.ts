/**
 * The pod policy as ValidatingAdmissionPolicies. The API server enforces it on the worker's service
 * account, so it also applies to someone who has stolen the worker's token.
 */
import type {
  V1ValidatingAdmissionPolicy,
  V1ValidatingAdmissionPolicyBinding,
  V1Variable,
} from '@kubernetes/client-node';
import { MANAGED_BY_LABEL, RESERVED_METADATA_PREFIX } from '../../../../core/domain/podTemplate.ts';
import { policyCel } from './celPolicy.ts';
import type { ImplicitlyAllowed, PodPolicy } from './podPolicy.ts';
import { POD_RULES } from './podRules.ts';
import { hasNoDataSource } from './claimRule.ts';

/** Options of {@link admissionPolicy}. */
export interface AdmissionPolicyOptions {
  /** Name of the first policy and its binding. The others add `-claims` and `-secrets`. */
  readonly name: string;
  /**
   * Service account of the worker, as `namespace/name`. A label of the pod would not do: its author
   * could leave it out.
   */
  readonly serviceAccount: string;
}

interface Validation {
  /** Field of the policy that the message names. */
  readonly field: string;
  readonly expression: string;
}

/**
 * Returns ValidatingAdmissionPolicies and their bindings. They enforce the pod policy on pods,
 * claims and Secrets that this service account creates or updates, in every namespace.
 * https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/ (Kubernetes
 * 1.30 or newer)
 */
export function admissionPolicy(
  policy: PodPolicy,
  own: ImplicitlyAllowed,
  { name, serviceAccount }: AdmissionPolicyOptions,
): AdmissionObject[] {
  const user = `system:serviceaccount:${serviceAccount.replace('/', ':')}`;
  const cel = policyCel(policy, own);
  return ADMISSION_RULES.flatMap((rules) =>
    policyFor(rules, { name: `${name}${rules.suffix}`, user, cel }),
  );
}

/**
 * Fields of the policy for the pods that GitHub's container hooks create for jobs. The hooks set
 * these, and the job may read the Secrets of its namespace anyway.
 * https://github.com/actions/runner-container-hooks/blob/main/packages/k8s/src/k8s/index.ts
 */
export const JOB_POD_ALLOWANCES = {
  labels: ['runner-pod'],
  fields: ['nodeName', 'affinity'],
  serviceAccounts: ['default'],
  secrets: ['*'],
} as const;

/**
 * Returns the same for a service account with which the hooks of runners create pods for jobs, in
 * its own namespace. Rules of the policy do not apply, because such a pod has no marks of a runner.
 */
export function jobPodAdmissionPolicy(
  policy: PodPolicy,
  own: ImplicitlyAllowed,
  { name, serviceAccount }: AdmissionPolicyOptions,
): AdmissionObject[] {
  const [namespace = ''] = serviceAccount.split('/');
  const more = Object.fromEntries(
    Object.entries(JOB_POD_ALLOWANCES).map(([field, values]) => [
      field,
      [...policy[field as keyof typeof JOB_POD_ALLOWANCES], ...values],
    ]),
  );
  const user = `system:serviceaccount:${serviceAccount.replace('/', ':')}`;
  const cel = policyCel({ ...policy, ...more, rules: [] }, { ...own, namespaces: [namespace] });
  return JOB_POD_ADMISSION_RULES.flatMap((rules) =>
    policyFor(rules, { name: `${name}${rules.suffix}`, user, cel }),
  );
}

/** An object of {@link admissionPolicy}. */
export type AdmissionObject = V1ValidatingAdmissionPolicy | V1ValidatingAdmissionPolicyBinding;

/**
 * Rules that the API server enforces for one kind of object. They are the same for all policies.
 */
export interface AdmissionRules {
  /** Suffix of the policy's name. */
  readonly suffix: string;
  readonly resource: string;
  readonly variables: readonly V1Variable[];
  readonly validations: readonly Validation[];
}

const isCreated = 'request.operation == "CREATE"';
/** The worker annotates objects and sets their owners. Nothing else of them may change. */
const UNCHANGED = 'object.spec == oldObject.spec';
/** Finalizers would keep an object for ever, and owners delete it. */
const PLAIN_METADATA =
  '!has(object.metadata.finalizers) && !has(object.metadata.generateName) && !has(object.metadata.ownerReferences)';

/** Returns expressions of a map now and before, which is empty where it is absent. */
function bothOf(field: string): [now: string, before: string] {
  const of = (object: string): string => `(has(${object}.${field}) ? ${object}.${field} : {})`;
  return [of('object'), of('oldObject')];
}

const isSame = (now: string, before: string): string => `${now} == ${before}`;

/** The rules for each kind of object, without a policy's own values. */
export const ADMISSION_RULES: readonly AdmissionRules[] = [
  {
    suffix: '',
    resource: 'pods',
    variables: [
      {
        name: 'containers',
        expression:
          '(has(object.spec.initContainers) ? object.spec.initContainers : []) + object.spec.containers',
      },
    ],
    validations: [
      ...POD_RULES.flatMap(({ field, cel }) =>
        cel === undefined ? [] : [{ field, expression: `${conditionOf(field)} || (${cel})` }],
      ),
      { field: 'fields', expression: `!(${isCreated}) || (${PLAIN_METADATA})` },
      { field: 'fields', expression: `${isCreated} || (${UNCHANGED})` },
    ],
  },
  {
    suffix: '-claims',
    resource: 'persistentvolumeclaims',
    variables: [],
    validations: [
      {
        field: 'claims',
        expression: `!(${isCreated}) || (!has(object.spec.volumeName) && ${hasNoDataSource('object.spec', 'object.metadata.name')})`,
      },
      { field: 'claims', expression: `${isCreated} || (${UNCHANGED})` },
    ],
  },
  {
    suffix: '-secrets',
    resource: 'secrets',
    variables: [],
    // Kubernetes writes a token of a service account into a Secret of another type. GitHub's container
    // hooks create such Secrets to pull images with, and the worker sets their owner.
    validations: [
      {
        field: 'secrets',
        expression: `object.type == "Opaque" || (request.operation == "UPDATE" && ${isSame('object.type', 'oldObject.type')} && ${isSame(...bothOf('data'))} && ${isSame(...bothOf('metadata.annotations'))})`,
      },
    ],
  },
];

/**
 * A job must not create an object that the worker takes for its own: the sweep would repair it, and
 * remove the registration that it names.
 */
const WITHOUT_OWN_METADATA: readonly Validation[] = (['labels', 'annotations'] as const).map(
  (field) => {
    const [now] = bothOf(`metadata.${field}`);
    return {
      field,
      expression: `${now}.all(k, !k.startsWith("${RESERVED_METADATA_PREFIX}") && k != "${MANAGED_BY_LABEL}")`,
    };
  },
);

/** The rules for what the hooks of runners create. They need Secrets of another type, too. */
export const JOB_POD_ADMISSION_RULES: readonly AdmissionRules[] = ADMISSION_RULES.map((rules) => ({
  ...rules,
  validations: [
    ...(rules.resource === 'secrets'
      ? [
          {
            field: 'secrets',
            expression: 'object.type != "kubernetes.io/service-account-token"',
          },
        ]
      : rules.validations),
    ...WITHOUT_OWN_METADATA,
  ],
}));

/**
 * Rules about the spec hold for new pods: it does not change later. Metadata may, and so may have
 * what others have written.
 */
function conditionOf(field: string): string {
  if (field === 'namespaces') return 'false';
  if (field !== 'labels' && field !== 'annotations') return `!(${isCreated})`;
  const [now, before] = bothOf(`metadata.${field}`);
  return `!(${isCreated}) && ${now}.all(k, k.startsWith("holdfast.dev/") || (k in ${before} && ${before}[k] == ${now}[k]))`;
}

/** Returns one policy and its binding. @param cel - expression of `variables.policy` */
export function policyFor(
  { resource, variables, validations }: AdmissionRules,
  { name, user, cel }: { readonly name: string; readonly user: string; readonly cel: string },
): AdmissionObject[] {
  return [
    {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name },
      spec: {
        failurePolicy: 'Fail',
        matchConstraints: {
          resourceRules: [
            {
              apiGroups: [''],
              apiVersions: ['v1'],
              operations: ['CREATE', 'UPDATE'],
              resources: [resource],
            },
          ],
        },
        matchConditions: [
          {
            name: 'by-the-account',
            expression: `request.userInfo.username == ${JSON.stringify(user)}`,
          },
        ],
        variables: [{ name: 'policy', expression: cel }, ...variables],
        validations: validations.map(({ field, expression }) => ({
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
