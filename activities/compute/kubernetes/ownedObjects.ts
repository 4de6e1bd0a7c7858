/** The objects of one installation for the sweep. Of Secrets and claims nothing but the metadata is ever read. */
import type { V1ConfigMap, V1ObjectMeta, V1Pod } from '@kubernetes/client-node';
import { z } from 'zod';
import type { SweepMark } from '../../../core/contract/index.ts';
import { defined } from '../../../core/defined.ts';
import { parseDuration } from '../../../core/domain/duration.ts';
import type { RunnerIdentity } from '../../../core/domain/pod.ts';
import type { OwnedKind, OwnedObject, OwnedRegistration } from '../../../core/sweep/ownedObject.ts';
import type { OwnedObjects } from '../../ownedObjects.ts';
import type { ApiObjects, Resource } from './apiObjects.ts';
import type { ApiServer } from './apiServer.ts';
import { askForDeletion } from './askForDeletion.ts';
import { apiFailure, isAbsence, isOtherUid, toComputeError } from './errors.ts';
import { ATTEMPT_ANNOTATION, FIRST_RUN_ID_ANNOTATION, HOLD_ANNOTATION, INSTALLATION_LABEL, JOB_TIMEOUT_CAP_ANNOTATION, SWEEP_ANNOTATION, WORKFLOW_ID_ANNOTATION, ownLabels, ownSelector } from './metadata.ts';
import { listObjects } from './objectList.ts';
import { annotatedRegistration } from './registrationSecret.ts';
import { viewOfPod } from './viewOfPod.ts';

const RESOURCES = { pod: 'pods', secret: 'secrets', claim: 'persistentvolumeclaims' } as const satisfies Record<OwnedKind, Resource>;

const marks = z.array(z.object({ kind: z.enum(['ghost registration', 'zombie runner', 'hung runner', 'orphaned step']), key: z.string(), since: z.string(), unpolled: z.number().exactOptional() }));

interface AnyObject {
  readonly metadata?: V1ObjectMeta;
}

export function createOwnedObjects(api: ApiServer, objects: ApiObjects, installation: string): OwnedObjects {
  const marksName = `holdfast-sweep-${installation.toLowerCase().replaceAll('_', '-')}`;

  async function loadMarks(): Promise<SweepMark[]> {
    const kept = await objects.get<V1ConfigMap>('configmaps', undefined, marksName);
    const text = kept?.data?.['marks'];
    return text === undefined ? [] : marks.parse(JSON.parse(text));
  }

  return {
    async list(kind, signal) {
      const found: OwnedObject[] = [];
      const resource = RESOURCES[kind];
      const metadataOnly = kind !== 'pod';
      const options = { resource, path: objects.allOf(resource), labelSelector: ownSelector(installation), metadataOnly, onObject: (object: AnyObject) => found.push(ownedObject(kind, object)) };
      try {
        await listObjects(api, metadataOnly ? 'PartialObjectMetadataList' : 'PodList', { ...options, ...defined({ signal }) });
      } catch (error) {
        throw toComputeError(error, `list ${resource}`);
      }
      return found;
    },

    async look({ kind, name, namespace, uid }) {
      const object = await objects.get<AnyObject>(RESOURCES[kind], namespace, name, kind !== 'pod');
      const isOurs = object?.metadata?.labels?.[INSTALLATION_LABEL] === installation && (uid === undefined || object.metadata.uid === uid);
      return object === undefined || !isOurs ? undefined : ownedObject(kind, object);
    },

    async mark({ kind, name, namespace, uid }, text) {
      const resource = RESOURCES[kind];
      const body = { metadata: { uid, annotations: { [SWEEP_ANNOTATION]: text } } };
      try {
        await api.call({ verb: 'patch', resource, path: objects.pathOf(resource, namespace, name), body, metadataOnly: kind !== 'pod' });
      } catch (error) {
        if (!isAbsence(error, name) && !isOtherObject(error)) throw toComputeError(error, `mark ${resource} ${namespace}/${name}`);
      }
    },

    async delete({ kind, name, namespace, uid, resourceVersion }, how = {}) {
      const resource = RESOURCES[kind];
      const path = objects.pathOf(resource, namespace, name);
      if (kind === 'pod') return await askForDeletion(api, path, { name, uid, namespace }, how);
      try {
        await api.call({ verb: 'delete', resource, path, body: { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid, resourceVersion } } });
        return 'gone';
      } catch (error) {
        if (isAbsence(error, name) || isOtherUid(error)) return 'gone';
        throw toComputeError(error, `delete ${resource} ${namespace}/${name}`);
      }
    },

    loadMarks,

    async saveMarks(kept) {
      const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: marksName, labels: ownLabels(installation) }, data: { marks: JSON.stringify(kept) } };
      try {
        await api.call({ verb: 'patch', resource: 'configmaps', path: objects.pathOf('configmaps', undefined, marksName), body: { data: body.data } });
      } catch (error) {
        if (!isAbsence(error, marksName)) throw toComputeError(error, `keep the sweep's marks in configmap ${marksName}`);
        await create(body);
      }
    },
  };

  async function create(body: object): Promise<void> {
    try {
      await api.call({ verb: 'create', resource: 'configmaps', path: objects.pathOf('configmaps', undefined), body });
    } catch (error) {
      throw toComputeError(error, `create configmap ${marksName} for the sweep's marks`);
    }
  }
}

/** A patch that names another UID than the object's is refused as an attempt to change it. */
function isOtherObject(error: unknown): boolean {
  const failure = apiFailure(error);
  return failure?.own === true && (failure.status === 422 || failure.status === 409) && /uid/i.test(failure.message);
}

function ownedObject(kind: OwnedKind, object: AnyObject): OwnedObject {
  const { name = '', namespace = '', uid = '', resourceVersion = '', creationTimestamp, deletionTimestamp, annotations = {} } = object.metadata ?? {};
  return {
    kind,
    name,
    namespace,
    uid,
    resourceVersion,
    createdAtMs: new Date(creationTimestamp ?? Number.NaN).getTime(),
    held: annotations[HOLD_ANNOTATION] !== undefined && annotations[HOLD_ANNOTATION] !== 'false',
    terminating: deletionTimestamp !== undefined,
    ...defined({ identity: identityIn(annotations), registration: registrationIn(annotations), mark: annotations[SWEEP_ANNOTATION] }),
    ...(kind === 'pod' ? { pod: viewOfPod(object as V1Pod, new Date().toISOString()), ...defined({ jobTimeoutCapMs: parseDuration(annotations[JOB_TIMEOUT_CAP_ANNOTATION] ?? '') }) } : {}),
  };
}

function identityIn(annotations: Readonly<Record<string, string>>): RunnerIdentity | undefined {
  const { [WORKFLOW_ID_ANNOTATION]: workflowId, [FIRST_RUN_ID_ANNOTATION]: firstRunId, [ATTEMPT_ANNOTATION]: attempt } = annotations;
  return workflowId === undefined || firstRunId === undefined ? undefined : { workflowId, firstRunId, attempt: Number(attempt) };
}

function registrationIn(annotations: Readonly<Record<string, string>>): OwnedRegistration | undefined {
  const noted = annotatedRegistration(annotations);
  return noted && { name: noted.runnerName, ...defined({ id: noted.runnerId }), ...noted.at };
}
