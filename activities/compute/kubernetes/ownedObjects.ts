/**
 * Access to the objects of one installation for the sweep. Only the metadata of Secrets and claims
 * is read.
 */
import type { V1ObjectMeta, V1Pod } from '@kubernetes/client-node';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import { parseDuration } from '../../../core/domain/duration.ts';
import type { RunnerIdentity } from '../../../core/domain/pod.ts';
import {
  JOB_OBJECT_KINDS,
  type OwnedKind,
  type OwnedObject,
  type OwnedRegistration,
} from '../../../core/sweep/ownedObject.ts';
import type { OwnedDeletion, OwnedObjects } from '../../shared/ownedObjects.ts';
import type { ApiObjects, Resource } from './apiObjects.ts';
import type { ApiServer } from './apiServer.ts';
import { requestDeletion } from './requestDeletion.ts';
import { isNotFound, isUidMismatch, toComputeError } from './errors.ts';
import {
  ATTEMPT_ANNOTATION,
  FIRST_RUN_ID_ANNOTATION,
  INSTALLATION_LABEL,
  TEMPORAL_NAMESPACE_ANNOTATION,
  RUNNER_POD_LABEL,
  JOB_TIMEOUT_CAP_ANNOTATION,
  SWEEP_MARK_ANNOTATION,
  WORKFLOW_ID_ANNOTATION,
  isOnHold,
  installationSelector,
} from './metadata.ts';
import { listObjects } from './objectList.ts';
import { parseRegistrationAnnotations } from './registrationSecret.ts';
import { toPodView } from './podView.ts';
import { SweepMarks } from './sweepMarks.ts';

const RESOURCES = {
  pod: 'pods',
  secret: 'secrets',
  claim: 'persistentvolumeclaims',
  'job pod': 'pods',
  'container step': 'jobs',
  'job secret': 'secrets',
} as const satisfies Record<OwnedKind, Resource>;
const isJobs = (kind: OwnedKind): boolean => JOB_OBJECT_KINDS.some((each) => each === kind);

interface AnyObject {
  readonly metadata?: V1ObjectMeta;
}

/** Objects of one installation, and the API server that has them. */
interface Installation {
  readonly api: ApiServer;
  readonly objects: ApiObjects;
  readonly installation: string;
}

/** Returns access to the objects of one installation, for the sweep. */
export function createOwnedObjects(
  api: ApiServer,
  objects: ApiObjects,
  installation: string,
): OwnedObjects {
  const here: Installation = { api, objects, installation };
  const marks = new SweepMarks(api, objects, installation);
  return {
    now: () => api.now(),
    list: async (kind, signal) => await listOwned(here, kind, signal),
    get: async (object) => await getOwned(here, object),
    mark: async (object, text) => await markOwned(here, object, text),
    delete: async (object, how = {}) => await deleteOwned(here, object, how),
    loadMarks: async () => await marks.load(),
    saveMarks: async (kept) => await marks.save(kept),
  };
}

/**
 * Returns whether the object has the label of this installation. An object of a job must have the
 * label of a runner pod and no owner instead.
 */
function isOf(
  installation: string,
  kind: OwnedKind,
  { metadata: { labels = {}, ownerReferences = [] } = {} }: AnyObject,
): boolean {
  return isJobs(kind)
    ? labels[RUNNER_POD_LABEL] !== undefined && ownerReferences.length === 0
    : labels[INSTALLATION_LABEL] === installation;
}

async function listOwned(
  { api, objects, installation }: Installation,
  kind: OwnedKind,
  signal: AbortSignal | undefined,
): Promise<OwnedObject[]> {
  const found: OwnedObject[] = [];
  const resource = RESOURCES[kind];
  const metadataOnly = kind !== 'pod';
  const onObject = (object: AnyObject): void => {
    if (isOf(installation, kind, object)) found.push(ownedObject(kind, object));
  };
  const options = {
    resource,
    labelSelector: isJobs(kind) ? RUNNER_POD_LABEL : installationSelector(installation),
    metadataOnly,
    onObject,
  };
  try {
    for (const path of isJobs(kind) ? objects.allOfJobs(resource) : objects.allOf(resource))
      await listObjects(api, metadataOnly ? 'PartialObjectMetadataList' : 'PodList', {
        ...options,
        path,
        ...omitUndefined({ signal }),
      });
  } catch (error) {
    throw toComputeError(error, `list ${resource}`);
  }
  return found;
}

async function getOwned(
  { objects, installation }: Installation,
  { kind, name, namespace, uid }: Parameters<OwnedObjects['get']>[0],
): Promise<OwnedObject | undefined> {
  const object = await objects.get<AnyObject>(RESOURCES[kind], namespace, name, {
    metadataOnly: kind !== 'pod',
  });
  return object === undefined ||
    !isOf(installation, kind, object) ||
    (uid !== undefined && object.metadata?.uid !== uid)
    ? undefined
    : ownedObject(kind, object);
}

async function markOwned(
  { api, objects }: Installation,
  { kind, name, namespace, uid }: OwnedObject,
  text: string | null,
): Promise<void> {
  const resource = RESOURCES[kind];
  const body = { metadata: { uid, annotations: { [SWEEP_MARK_ANNOTATION]: text } } };
  try {
    await api.call({
      verb: 'patch',
      resource,
      path: objects.pathOf(resource, namespace, name),
      body,
      metadataOnly: kind !== 'pod',
    });
  } catch (error) {
    if (!isNotFound(error, name) && !isUidMismatch(error))
      throw toComputeError(error, `mark ${resource} ${namespace}/${name}`);
  }
}

async function deleteOwned(
  { api, objects }: Installation,
  { kind, name, namespace, uid, resourceVersion }: OwnedObject,
  how: OwnedDeletion,
): Promise<'deleted' | 'terminating'> {
  const resource = RESOURCES[kind];
  const path = objects.pathOf(resource, namespace, name);
  if (kind === 'pod') return await requestDeletion(api, path, { name, uid, namespace }, how);
  try {
    await api.call({
      verb: 'delete',
      resource,
      path,
      body: {
        apiVersion: 'v1',
        kind: 'DeleteOptions',
        preconditions: { uid, resourceVersion },
        propagationPolicy: 'Background',
      },
    });
    return 'deleted';
  } catch (error) {
    if (isNotFound(error, name) || isUidMismatch(error)) return 'deleted';
    throw toComputeError(error, `delete ${resource} ${namespace}/${name}`);
  }
}

function ownedObject(kind: OwnedKind, object: AnyObject): OwnedObject {
  const {
    name = '',
    namespace = '',
    uid = '',
    resourceVersion = '',
    creationTimestamp,
    deletionTimestamp,
    annotations = {},
    labels = {},
  } = object.metadata ?? {};
  return {
    kind,
    name,
    namespace,
    uid,
    resourceVersion,
    createdAtMs: new Date(creationTimestamp ?? Number.NaN).getTime(),
    onHold: isOnHold(annotations),
    terminating: deletionTimestamp !== undefined,
    ...omitUndefined({ mark: annotations[SWEEP_MARK_ANNOTATION] }),
    ...(isJobs(kind)
      ? omitUndefined({ runnerPod: labels[RUNNER_POD_LABEL] })
      : omitUndefined({
          identity: identityIn(annotations),
          registration: registrationIn(annotations),
        })),
    ...(kind === 'pod'
      ? {
          pod: toPodView(object as V1Pod, new Date().toISOString()),
          ...omitUndefined({
            jobTimeoutCapMs: parseDuration(annotations[JOB_TIMEOUT_CAP_ANNOTATION] ?? ''),
          }),
        }
      : {}),
  };
}

function identityIn(annotations: Readonly<Record<string, string>>): RunnerIdentity | undefined {
  const {
    [WORKFLOW_ID_ANNOTATION]: workflowId,
    [FIRST_RUN_ID_ANNOTATION]: firstRunId,
    [ATTEMPT_ANNOTATION]: attempt,
    [TEMPORAL_NAMESPACE_ANNOTATION]: temporalNamespaceId,
  } = annotations;
  return workflowId === undefined || firstRunId === undefined
    ? undefined
    : {
        workflowId,
        firstRunId,
        attempt: Number(attempt),
        ...omitUndefined({ temporalNamespaceId }),
      };
}

function registrationIn(
  annotations: Readonly<Record<string, string>>,
): OwnedRegistration | undefined {
  const noted = parseRegistrationAnnotations(annotations);
  return noted && { name: noted.runnerName, ...omitUndefined({ id: noted.runnerId }), ...noted.at };
}
