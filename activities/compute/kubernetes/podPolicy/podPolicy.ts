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

const pattern = z.string().min(1, 'must not be empty; "*" matches any text');
/** https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/, without exponents. */
const quantity = z
  .string()
  .regex(
    /^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$/,
    'must be a Kubernetes quantity, such as "4", "500m" or "8Gi"',
  );

/** A field of a pod, without the index of a list: `containers.securityContext.seLinuxOptions`. */
const fieldPattern = z
  .string()
  .regex(
    /^[A-Za-z*][A-Za-z*.]*$/,
    'must be a field of a pod without indexes, for example "affinity" or "containers.lifecycle"',
  );
const patterns = z.array(pattern);
const resourceName = z
  .string()
  .regex(
    /^(cpu|memory|ephemeral-storage|hugepages-.+|.+\/.+)$/,
    'must be a resource, such as "cpu", "memory" or "nvidia.com/gpu"',
  );

/** Fields of a policy that a rule may replace. */
const allowances = z.strictObject({
  /**
   * Images of all containers. The runner and supervisor images in the worker's settings are always
   * allowed.
   * @default none
   */
  images: patterns.default([]),
  /**
   * Service accounts that a pod may use, with their tokens.
   * @default none
   */
  serviceAccounts: patterns.default([]),
  /**
   * Secrets that a pod may refer to, in addition to the Secret of its registration.
   * @default none
   */
  secrets: patterns.default([]),
  /**
   * Names of claims that a pod may mount, in addition to those created for it.
   * @default none
   */
  claims: patterns.default([]),
  /**
   * Kinds of volumes, by their field in the pod spec.
   * @default those that give no access outside of the pod
   */
  volumes: z
    .array(z.string().regex(/^[a-zA-Z]+$/, 'must be the field of a volume type, such as "nfs"'))
    .default(HARMLESS_VOLUMES),
  /**
   * Directories of the node that may be mounted, with their content.
   * @default none
   */
  hostPaths: z
    .array(z.string().regex(/^\/(?!.*\.\.)/, 'must be an absolute path without ".."'))
    .default([]),
  /**
   * Host namespaces that a pod may share. `network` also permits host ports. `users` is shared
   * unless `userNamespaces` is true.
   * @default none
   */
  host: z.array(z.enum(['network', 'pid', 'ipc', 'users'])).default([]),
  /**
   * Whether privileged containers, sysctls, SELinux options and unconfined profiles are allowed.
   * @default false
   */
  privileged: z.boolean().default(false),
  /** Linux capabilities that may be added. @default none */
  capabilities: z
    .array(z.string().regex(/^([A-Z_]+|\*)$/, 'must be a capability, such as "NET_ADMIN"'))
    .default([]),
  /** @default none */
  runtimeClasses: patterns.default([]),
  /** @default none */
  priorityClasses: patterns.default([]),
  /**
   * Labels of a node that a pod may ask for, as `key` or `key=value`.
   * @default the CPU architecture and the operating system
   */
  nodeSelectors: patterns.default(['kubernetes.io/arch', 'kubernetes.io/os']),
  /**
   * Taints that a pod may tolerate, as `key` or `key=value`. A toleration of all values needs
   * `key`, and one of all taints needs `*`.
   * @default none
   */
  tolerations: patterns.default([]),
  /** Labels of a pod in addition to Holdfast's, as `key` or `key=value`. @default none */
  labels: patterns.default([]),
  /** Annotations of a pod in addition to Holdfast's, as `key` or `key=value`. @default none */
  annotations: patterns.default([]),
  /**
   * Fields that no other entry of the policy is about, with everything in them.
   * @default none
   */
  fields: z.array(fieldPattern).default([]),
  /**
   * Maximum resource limits of each container. With a maximum of `cpu`, `memory` or
   * `ephemeral-storage`, the limit is required. A pod may ask for other resources, such as
   * `nvidia.com/gpu`, only if they have a maximum here.
   * @default no maximum of these three
   */
  resources: z.record(resourceName, quantity).default({}),
  /**
   * Whether a runner may bring a pod template of its own: `fixed` leaves it that of the worker.
   * @default merged
   */
  template: z.enum(['merged', 'fixed']).default('merged'),
  /**
   * Fields of the worker's own template that a runner may override.
   * @default none
   */
  overrides: z.array(fieldPattern).default([]),
});

/** Which runners a rule is for. A runner that matches all of its lists has its policy. */
const SELECTORS = {
  /** Names of runner sets. */
  sets: patterns.min(1, 'must name at least one').exactOptional(),
  /** Organizations ("acme"), repositories ("acme/web") and enterprises ("enterprises/big"). */
  scopes: patterns.min(1, 'must name at least one').exactOptional(),
  /** Credentials with which the runner registers. */
  credentials: patterns.min(1, 'must name at least one').exactOptional(),
};

/** Without the defaults: a rule replaces the fields that it has. */
const ruleSchema = z
  .strictObject({
    ...SELECTORS,
    ...(Object.fromEntries(
      Object.entries(allowances.shape).map(([name, field]) => [
        name,
        field.removeDefault().exactOptional(),
      ]),
    ) as unknown as { [F in keyof Allowances]: z.ZodExactOptional<z.ZodType<Allowances[F]>> }),
  })
  .refine(
    ({ sets, scopes, credentials }) => (sets ?? scopes ?? credentials) !== undefined,
    'must name sets, scopes or credentials',
  );

/**
 * Schema of HOLDFAST_POD_POLICY_FILE. In names, `*` matches any text. Fields that are left out have
 * their restricted defaults. A field of a pod that the policy does not name is rejected.
 */
export const podPolicySchema = z.strictObject({
  ...allowances.shape,
  /**
   * Whether pods get a user namespace of their own (`hostUsers: false`). Their nodes must support
   * it. A pod with the node's user namespace then needs `users` in `host`.
   * @default false
   */
  userNamespaces: z.boolean().default(false),
  /**
   * Other policies for some runners. The first one that matches replaces the fields that it has.
   * @default none
   */
  rules: z.array(ruleSchema).default([]),
});

type Allowances = z.output<typeof allowances>;

/** A pod policy with its defaults filled in. */
export type PodPolicy = z.output<typeof podPolicySchema>;

/** A policy for some runners. */
export type PolicyRule = PodPolicy['rules'][number];

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
  /** Namespaces of the worker's runners. */
  readonly namespaces: readonly string[];
}
