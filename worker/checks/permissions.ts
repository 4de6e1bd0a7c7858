/** Permissions that the worker needs, whether it has them, and the commands that grant them. */
import type { KubeConfig } from '@kubernetes/client-node';
import { stringify } from 'yaml';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { ApiServer } from '../../activities/compute/kubernetes/apiServer.ts';
import { CLUSTER_ID_NAMESPACE } from '../../activities/compute/kubernetes/clusterId.ts';
import { toComputeError } from '../../activities/compute/kubernetes/errors.ts';

/** Modes of a worker that determine its permissions in a namespace. */
export interface PermissionModes {
  /**
   * Whether the worker sets the owner of the objects that container hooks of runners create for
   * jobs.
   */
  readonly ownsJobPods: boolean;
}

/**
 * Returns the permissions that the worker needs in a namespace of runners, and no others.
 * deploy/rbac.yaml and deploy/rbac-job-pods.yaml grant the same.
 */
export function requiredPermissions({
  ownsJobPods,
}: PermissionModes): Readonly<Record<string, readonly string[]>> {
  const patch = (is: boolean): string[] => (is ? ['patch'] : []);
  return {
    // patch: to write the stop reasons for supervisors, and the marks of the sweep.
    pods: ['create', 'get', 'list', 'watch', 'patch', 'delete'],
    'pods/log': ['get'],
    secrets: ['create', 'get', ...patch(ownsJobPods), 'delete'],
    persistentvolumeclaims: ['create', 'get', 'patch', 'delete'],
    ...(ownsJobPods ? { jobs: ['get', 'list', 'watch', 'patch', 'delete'] } : {}),
  };
}

/** Namespace of runners, and the modes of the worker there. */
export interface RunnerNamespace extends PermissionModes {
  readonly namespace: string;
}

/** API group of each resource that is not in the core group. */
const GROUPS: Readonly<Record<string, string>> = { jobs: 'batch' };

/**
 * Permission to identify the cluster, see clusterId.ts. Reading a namespace is a permission in that
 * namespace.
 */
const CLUSTER_ID_PERMISSION = {
  resource: 'namespaces',
  verb: 'get',
  name: CLUSTER_ID_NAMESPACE,
} as const;

/** One Kubernetes permission that the worker needs. */
export interface Permission {
  readonly resource: string;
  readonly verb: string;
  /** Name of the only object that the permission is for. */
  readonly name?: string;
  /** Namespace in which the permission is needed. */
  readonly namespace: string;
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
 * Asks the API server which permissions this process has. Its answer includes every authorizer.
 * @param namespaces - namespaces of runners, that of runners without a namespace first
 * @throws ComputeError `unavailable` if the API server is unreachable, `forbidden` if it rejects
 * the credentials
 */
export async function checkPermissions(
  kubeConfig: KubeConfig,
  namespaces: readonly RunnerNamespace[],
): Promise<PermissionReport> {
  const api = new ApiServer(kubeConfig, { connections: 4 });
  const wanted = permissions(namespaces);
  try {
    const [user, answers] = await Promise.all([
      whoAmI(api),
      Promise.all(wanted.map((each) => isAllowed(api, each))),
    ]);
    const missing = wanted.filter((_, index) => !answers[index]);
    return missing.length === 0
      ? { user, missing }
      : { user, missing, fix: permissionFixCommand(user, namespaces) };
  } catch (error) {
    throw toComputeError(error, 'ask the API server for our permissions');
  } finally {
    await api.close();
  }
}

/**
 * Returns the shell command that grants the required permissions, and no others, to the user. Pure.
 */
function permissionFixCommand(user: string, namespaces: readonly RunnerNamespace[]): string {
  const apiVersion = 'rbac.authorization.k8s.io/v1';
  const grant = (metadata: { name: string; namespace: string }, rules: object[]): string[] => [
    stringify({ apiVersion, kind: 'Role', metadata, rules }),
    stringify({
      apiVersion,
      kind: 'RoleBinding',
      metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: metadata.name },
      subjects: [subjectOf(user)],
    }),
  ];
  const { resource, verb, name } = CLUSTER_ID_PERMISSION;
  const clusterId = {
    apiGroups: [''],
    resources: [resource],
    resourceNames: [name],
    verbs: [verb],
  };
  const documents = [
    ...namespaces.flatMap(({ namespace, ...modes }) =>
      grant(
        { name: ROLE, namespace },
        Object.entries(requiredPermissions(modes)).map(([of, verbs]) => ({
          apiGroups: [GROUPS[of] ?? ''],
          resources: [of],
          verbs: [...verbs],
        })),
      ),
    ),
    ...grant({ name: `${ROLE}-in-${namespaces[0]?.namespace}`, namespace: name }, [clusterId]),
  ];
  return `kubectl apply -f - <<'END'\n${documents.join('---\n')}END`;
}

function permissions(namespaces: readonly RunnerNamespace[]): Permission[] {
  const [home] = namespaces;
  return [
    ...namespaces.flatMap(({ namespace, ...modes }) =>
      Object.entries(requiredPermissions(modes)).flatMap(([resource, verbs]) =>
        verbs.map((verb) => ({ resource, verb, namespace })),
      ),
    ),
    ...(home === undefined ? [] : [{ ...CLUSTER_ID_PERMISSION, namespace: home.namespace }]),
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
  { resource: path, verb, name, namespace }: Permission,
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
