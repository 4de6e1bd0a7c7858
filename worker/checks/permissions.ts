/** What the worker must be allowed to do, whether it is, and what to run if it is not. */
import type { KubeConfig } from '@kubernetes/client-node';
import { stringify } from 'yaml';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { ApiServer } from '../../activities/compute/kubernetes/apiServer.ts';
import { CLUSTER_ID_NAMESPACE } from '../../activities/compute/kubernetes/clusterId.ts';
import { toComputeError } from '../../activities/compute/kubernetes/errors.ts';

/** The least privilege in the runners' namespace: every verb is used, and none is missing. deploy/rbac.yaml says the same. */
export const requiredPermissions = {
  pods: ['create', 'get', 'list', 'watch', 'patch', 'delete'],
  'pods/log': ['get'],
  secrets: ['create', 'get', 'patch', 'delete'],
  persistentvolumeclaims: ['create', 'get', 'patch', 'delete'],
  jobs: ['get', 'list', 'watch', 'patch', 'delete'],
} as const;

/** API groups of those that are not in the core one. */
const GROUPS: Readonly<Record<string, string>> = { jobs: 'batch' };

/** To tell which cluster this is, see clusterId.ts. To read a namespace is a permission in that namespace. */
const CLUSTER_ID_PERMISSION = {
  resource: 'namespaces',
  verb: 'get',
  name: CLUSTER_ID_NAMESPACE,
} as const;

/** One Kubernetes permission that the worker needs. */
export interface Permission {
  readonly resource: string;
  readonly verb: string;
  /** Name of the single object that the permission is for, a namespace. */
  readonly name?: string;
}

/** Permissions that the worker lacks, and how to grant them. */
export interface PermissionReport {
  /** User name of this process at the API server. */
  readonly user: string;
  readonly missing: readonly Permission[];
  /**
   * Shell command with which an administrator grants the missing permissions. Absent if none is
   * missing.
   */
  readonly fix?: string;
}

const ROLE = 'holdfast-worker';

interface SelfSubjectReview {
  readonly status?: { readonly userInfo?: { readonly username?: string } };
}
interface SelfSubjectAccessReview {
  readonly status?: { readonly allowed?: boolean };
}

/**
 * Asks the API server itself, which knows of every authorizer.
 * @param namespace `undefined`: all namespaces
 * @throws ComputeError `unavailable` when it is not reached, `forbidden` when it does not take the credentials
 */
export async function checkPermissions(
  kubeConfig: KubeConfig,
  namespace: string | undefined,
): Promise<PermissionReport> {
  const api = new ApiServer(kubeConfig, { connections: 4 });
  try {
    const [user, answers] = await Promise.all([
      whoAmI(api),
      Promise.all(permissions().map((each) => isAllowed(api, each, namespace))),
    ]);
    const missing = permissions().filter((_, index) => !answers[index]);
    return missing.length === 0
      ? { user, missing }
      : { user, missing, fix: permissionFixCommand(user, namespace) };
  } catch (error) {
    throw toComputeError(error, 'ask the API server for our permissions');
  } finally {
    await api.close();
  }
}

/** A command that grants what is required, and no more, to this user. Pure. */
function permissionFixCommand(user: string, namespace: string | undefined): string {
  const apiVersion = 'rbac.authorization.k8s.io/v1';
  const grant = (
    kind: 'Role' | 'ClusterRole',
    metadata: { name: string; namespace?: string },
    rules: object[],
  ): string[] => [
    stringify({ apiVersion, kind, metadata, rules }),
    stringify({
      apiVersion,
      kind: `${kind}Binding`,
      metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name: metadata.name },
      subjects: [subjectOf(user)],
    }),
  ];
  const rules = Object.entries(requiredPermissions).map(([resource, verbs]) => ({
    apiGroups: [GROUPS[resource] ?? ''],
    resources: [resource],
    verbs: [...verbs],
  }));
  const { resource, verb, name } = CLUSTER_ID_PERMISSION;
  const clusterId = {
    apiGroups: [''],
    resources: [resource],
    resourceNames: [name],
    verbs: [verb],
  };
  const documents =
    namespace === undefined
      ? grant('ClusterRole', { name: ROLE }, [...rules, clusterId])
      : [
          ...grant('Role', { name: ROLE, namespace }, rules),
          ...grant('Role', { name: `${ROLE}-in-${namespace}`, namespace: name }, [clusterId]),
        ];
  return `kubectl apply -f - <<'END'\n${documents.join('---\n')}END`;
}

function permissions(): Permission[] {
  return [
    ...Object.entries(requiredPermissions).flatMap(([resource, verbs]) =>
      verbs.map((verb) => ({ resource, verb })),
    ),
    CLUSTER_ID_PERMISSION,
  ];
}

async function whoAmI(api: ApiServer): Promise<string> {
  const review = await api.call<SelfSubjectReview>({
    verb: 'create',
    resource: 'selfsubjectreviews',
    path: '/apis/authentication.k8s.io/v1/selfsubjectreviews',
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
  });
  return review.status?.userInfo?.username ?? 'unknown';
}

async function isAllowed(
  api: ApiServer,
  { resource: path, verb, name }: Permission,
  namespace: string | undefined,
): Promise<boolean> {
  const [resource, subresource] = path.split('/');
  const review = await api.call<SelfSubjectAccessReview>({
    verb: 'create',
    resource: 'selfsubjectaccessreviews',
    path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
    body: {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: {
        resourceAttributes: omitUndefined({
          group: GROUPS[path],
          resource,
          verb,
          subresource,
          name,
          namespace: name ?? namespace,
        }),
      },
    },
  });
  return review.status?.allowed === true;
}

function subjectOf(user: string): object {
  const [, account, namespace, name] = /^system:(serviceaccount):([^:]+):([^:]+)$/.exec(user) ?? [];
  if (account) return { kind: 'ServiceAccount', name, namespace };
  return { kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: user };
}
