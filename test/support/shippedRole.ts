/** The permissions that deploy/rbac.yaml grants a worker, in a namespace of a test. */
import { readFileSync } from 'node:fs';
import type { CoreV1Api, KubeConfig } from '@kubernetes/client-node';
import { parseAllDocuments, stringify } from 'yaml';
import {
  checkPermissions,
  type Permission,
  type PermissionModes,
} from '../../worker/checks/permissions.ts';
import { actAs, applyManifest } from './clusterAccounts.ts';
import { until } from './until.ts';

/** The fields of a manifest that are read here. */
interface Document {
  readonly metadata: { readonly namespace?: string };
  readonly rules?: readonly {
    readonly resources: readonly string[];
    readonly verbs: readonly string[];
  }[];
}

const documentsOf = (file: string): Document[] =>
  parseAllDocuments(readFileSync(new URL(`../../deploy/${file}`, import.meta.url), 'utf8')).map(
    (document) => document.toJS() as Document,
  );

/** A permission of the manifests, in any namespace. */
export type ShippedPermission = Pick<Permission, 'verb' | 'resource'>;

/** All permissions, such as `get pods`. */
export const shippedPermissions: readonly ShippedPermission[] = [
  ...new Map(
    ['rbac.yaml', 'rbac-job-pods.yaml']
      .flatMap(documentsOf)
      .flatMap(({ rules = [] }) =>
        rules.flatMap(({ resources, verbs }) =>
          resources.flatMap((resource) => verbs.map((verb) => ({ verb, resource }))),
        ),
      )
      .map((permission) => [`${permission.verb} ${permission.resource}`, permission]),
  ).values(),
];

/** The modes of deploy/rbac.yaml. */
export const SHIPPED_MODES: PermissionModes = { ownsJobPods: false };

/** The permissions of the worker. */
export interface ShippedRoleOptions {
  /** Permission to leave out. */
  readonly without?: ShippedPermission;
  /** Whether deploy/rbac-job-pods.yaml is applied. @default false */
  readonly jobPods?: boolean;
  /** Whether deploy/rbac-nodes.yaml is applied. @default false */
  readonly nodes?: boolean;
}

/**
 * Creates the worker's service account with these permissions in the namespace.
 * @returns a client that acts as it, when its permissions are effective
 */
export async function actAsShippedWorker(
  at: { readonly namespace: string; readonly core: CoreV1Api; readonly kubeConfig: KubeConfig },
  { without, nodes = false, jobPods = false }: ShippedRoleOptions = {},
): Promise<KubeConfig> {
  const { namespace, kubeConfig } = at;
  const documents = [
    // For job pods the other manifest replaces the permissions in the runners' namespace.
    ...documentsOf('rbac.yaml').filter(
      ({ metadata }) => !jobPods || metadata.namespace !== 'holdfast-runners',
    ),
    ...(jobPods ? documentsOf('rbac-job-pods.yaml') : []),
    ...(nodes ? documentsOf('rbac-nodes.yaml') : []),
  ].map((document) => leftOut(document, without));
  // As in the header of rbac.yaml. Cluster-scoped objects have the name of this namespace too.
  const manifest = documents
    .map((document) => stringify(document))
    .join('---\n')
    .replaceAll(/namespace: holdfast(-runners|-jobs)?\n/g, `namespace: ${namespace}\n`)
    .replaceAll('worker-in-holdfast\n', `worker-in-${namespace}\n`)
    .replaceAll('worker-nodes\n', `worker-nodes-${namespace}\n`);
  await applyManifest(kubeConfig, manifest);
  const account = await actAs('holdfast-worker', at);
  const missing = without === undefined ? 0 : 1;
  await until(
    'the permissions to be in force',
    async () =>
      (await checkPermissions(account, [{ namespace, ...SHIPPED_MODES, ownsJobPods: jobPods }]))
        .missing.length === missing,
  );
  return account;
}

function leftOut(document: Document, without: ShippedPermission | undefined): Document {
  if (document.rules === undefined || without === undefined) return document;
  const rules = document.rules.map((rule) =>
    rule.resources.includes(without.resource)
      ? { ...rule, verbs: rule.verbs.filter((verb) => verb !== without.verb) }
      : rule,
  );
  // A rule without verbs is invalid.
  return { ...document, rules: rules.filter(({ verbs }) => verbs.length > 0) };
}
