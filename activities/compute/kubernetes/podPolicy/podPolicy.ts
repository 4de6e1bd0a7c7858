/**
 * The pod policy in the worker's configuration. It limits the pods of all runners,
 * regardless of who starts them.
 */
import { z } from 'zod';

/**
 * Volume sources that give no access outside of the pod. The name lists also limit `secret`,
 * `projected` and `persistentVolumeClaim`.
 */
const HARMLESS_VOLUMES = [
  'configMap',
  'downwardAPI',
  'emptyDir',
  'ephemeral',
  'persistentVolumeClaim',
  'projected',
  'secret',
];

const pattern = z.string().min(1, 'must not be empty; "*" stands for any text');
/** https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/, without exponents. */
const quantity = z
  .string()
  .regex(
    /^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$/,
    'is no quantity of Kubernetes: write for example "4", "500m" or "8Gi"',
  );

/**
 * Schema of HOLDFAST_POD_POLICY_FILE. In names, `*` matches any text. Fields that are left out have
 * their restricted defaults.
 */
export const podPolicySchema = z.strictObject({
  /**
   * Images of all containers. The runner and supervisor images in the worker's settings are always
   * allowed.
   * @default any
   */
  images: z.array(pattern).default(['*']),
  /**
   * Namespaces in addition to the worker's. Required with HOLDFAST_ALL_NAMESPACES.
   * @default none
   */
  namespaces: z.array(pattern).default([]),
  /**
   * Service accounts that a pod may use, with their tokens.
   * @default none
   */
  serviceAccounts: z.array(pattern).default([]),
  /**
   * Secrets that a pod may refer to, in addition to the Secret of its registration.
   * @default none
   */
  secrets: z.array(pattern).default([]),
  /**
   * Names of claims that a pod may mount, in addition to those created for it.
   * @default none
   */
  claims: z.array(pattern).default([]),
  /**
   * Kinds of volumes, by their field in the pod spec.
   * @default those that give no access outside of the pod
   */
  volumes: z
    .array(
      z.string().regex(/^[a-zA-Z]+$/, 'is no kind of volume: write its field, for example "nfs"'),
    )
    .default(HARMLESS_VOLUMES),
  /**
   * Directories of the node that may be mounted, with their content.
   * @default none
   */
  hostPaths: z
    .array(z.string().regex(/^\/(?!.*\.\.)/, 'must be an absolute path without ".."'))
    .default([]),
  /**
   * Host namespaces that a pod may share. `network` also permits host ports.
   * @default none
   */
  host: z.array(z.enum(['network', 'pid', 'ipc'])).default([]),
  /**
   * Whether privileged containers, sysctls and unconfined profiles are allowed.
   * @default false
   */
  privileged: z.boolean().default(false),
  /** Linux capabilities that may be added. @default none */
  capabilities: z
    .array(z.string().regex(/^([A-Z_]+|\*)$/, 'is no capability: write for example "NET_ADMIN"'))
    .default([]),
  /** @default any */
  runtimeClasses: z.array(pattern).default(['*']),
  /**
   * Maximum resource limits of each container. With a maximum, the limit is required.
   * @default no maximum
   */
  resources: z
    .strictObject({
      cpu: quantity.optional(),
      memory: quantity.optional(),
      'ephemeral-storage': quantity.optional(),
    })
    .default({}),
});

/** A pod policy with its defaults filled in. */
export type PodPolicy = z.output<typeof podPolicySchema>;

/** The policy that applies without a file. */
export const DEFAULT_POD_POLICY: PodPolicy = podPolicySchema.parse({});

/** Objects of the installation or of the pod itself that need no permission in the policy. */
export interface ImplicitlyAllowed {
  /** Images that the worker's settings name. */
  readonly images: readonly string[];
  /**
   * Claim of the artifact store, which a pod may mount only as its store volume.
   * @default none
   */
  readonly store?: string;
  /**
   * Secret with the access key of the artifact store, for the helper containers of a step.
   * @default none
   */
  readonly storeSecret?: string;
  /** The worker's namespace. */
  readonly namespace: string;
}
