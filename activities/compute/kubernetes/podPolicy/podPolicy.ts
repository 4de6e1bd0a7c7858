/** What the worker's config lets a runner's pod be, whoever starts the runner. */
import { z } from 'zod';

/** The sources of volumes that are no way out of the pod; `secret`, `projected` and `persistentVolumeClaim` are held to the lists of names. */
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

/** The file of HOLDFAST_POD_POLICY_FILE. Names may have `*`, which stands for any text. What is not said is as restricted as by default. */
export const podPolicySchema = z.strictObject({
  /** Images of all containers. The worker's own, for runners and the supervisor, always may be used. @default any */
  images: z.array(pattern).default(['*']),
  /** Namespaces besides the worker's, with HOLDFAST_ALL_NAMESPACES, which demands them. @default none */
  namespaces: z.array(pattern).default([]),
  /** Service accounts that a pod may be, and have the token of. @default none */
  serviceAccounts: z.array(pattern).default([]),
  /** Secrets that a pod may refer to besides its own registration's. @default none */
  secrets: z.array(pattern).default([]),
  /** Claims by name that a pod may mount besides those that are made for it alone. @default none */
  claims: z.array(pattern).default([]),
  /** Kinds of volumes, by their field in the pod's spec. @default those that lead nowhere out of the pod */
  volumes: z
    .array(
      z.string().regex(/^[a-zA-Z]+$/, 'is no kind of volume: write its field, for example "nfs"'),
    )
    .default(HARMLESS_VOLUMES),
  /** Folders of the node that may be mounted, and what is in them. @default none */
  hostPaths: z
    .array(z.string().regex(/^\/(?!.*\.\.)/, 'must be an absolute path without ".."'))
    .default([]),
  /** Namespaces of the node that a pod may share; `network` lets it use ports of the node, too. @default none */
  host: z.array(z.enum(['network', 'pid', 'ipc'])).default([]),
  /** Privileged containers, sysctls, profiles that are unconfined. @default false */
  privileged: z.boolean().default(false),
  /** Linux capabilities that may be added. @default none */
  capabilities: z
    .array(z.string().regex(/^([A-Z_]+|\*)$/, 'is no capability: write for example "NET_ADMIN"'))
    .default([]),
  /** @default any */
  runtimeClasses: z.array(pattern).default(['*']),
  /** The most that each container may be limited to; it then must have that limit. @default no ceiling */
  resources: z
    .strictObject({
      cpu: quantity.optional(),
      memory: quantity.optional(),
      'ephemeral-storage': quantity.optional(),
    })
    .default({}),
});

export type PodPolicy = z.output<typeof podPolicySchema>;

/** What holds without a file. */
export const DEFAULT_POD_POLICY: PodPolicy = podPolicySchema.parse({});

/** What is this installation's, or the pod's, own: it needs no leave. */
export interface ImplicitlyAllowed {
  /** Images that the worker's settings name. */
  readonly images: readonly string[];
  /** Claim with the store of what steps leave, which a pod may mount under its own name for it. @default none */
  readonly store?: string;
  /** Secret with the key of the store, which the containers beside a step may have. @default none */
  readonly storeSecret?: string;
  /** The worker's namespace. */
  readonly namespace: string;
}
