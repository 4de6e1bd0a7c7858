/**
 * RunnerSet as a Kubernetes resource (deploy/chart/crds): the fields that the controller reads, and
 * the status that it writes. Pure.
 */
import type { RunnerSetInput, RunnerSetStatus } from '../../core/contract/index.ts';
import { setWorkflowId } from '../../core/contract/index.ts';
import { isObject } from '../../core/domain/isObject.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { SET_LABEL } from '../../core/domain/podTemplate.ts';
import { toLabelValue } from '../../activities/compute/kubernetes/metadata.ts';

/** Path segments of the resource in the API. */
export const RUNNER_SETS = {
  group: 'holdfast.dev',
  version: 'v1alpha1',
  plural: 'runnersets',
  listKind: 'RunnerSetList',
} as const;

/** https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md#typical-status-properties */
export interface Condition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  /** Reason as one word in CamelCase, as in Kubernetes conditions. */
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration?: number;
  /** Time in ISO 8601, in whole seconds. */
  readonly lastTransitionTime: string;
}

/** Status of a RunnerSet resource. All counts except `jobs` are numbers of runners. */
export interface RunnerSetResourceStatus {
  /** Generation of the spec that `conditions` describe. */
  readonly observedGeneration?: number;
  readonly desired?: number;
  /** Number of runners in any state. */
  readonly replicas?: number;
  readonly starting?: number;
  readonly idle?: number;
  readonly busy?: number;
  readonly draining?: number;
  readonly jobs?: { readonly queued: number; readonly running: number };
  /** Label selector of the pods of the runners, for autoscalers. */
  readonly selector?: string;
  readonly blockedReason?: string;
  readonly waitingFor?: string;
  readonly lastFailure?: RunnerSetStatus['lastFailure'];
  readonly workflowId?: string;
  readonly conditions?: readonly Condition[];
}

/** A RunnerSet resource, with the fields that the controller uses. */
export interface RunnerSetResource {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly generation: number;
    readonly deletionTimestamp?: string;
  };
  readonly spec: Omit<RunnerSetInput, 'name'>;
  readonly status?: RunnerSetResourceStatus;
}

/** Content of the `Ready` condition. */
export interface ReadyStatus {
  readonly ready: boolean;
  readonly reason: string;
  readonly message: string;
}

/**
 * Maximum length of a message (characters), as in Kubernetes:
 * https://pkg.go.dev/k8s.io/apimachinery/pkg/apis/meta/v1#Condition
 */
const MAX_MESSAGE = 32_768;

/** Returns the input of the set's workflow. */
export function inputOf({ metadata, spec }: RunnerSetResource): RunnerSetInput {
  return { ...spec, name: metadata.name };
}

/**
 * Returns the status to write. A set that does not answer keeps its last known status.
 * @param now - ms since the epoch
 */
export function statusOf(
  { metadata, status: before = {} }: RunnerSetResource,
  standing: ReadyStatus,
  set: RunnerSetStatus | undefined,
  now: number,
): RunnerSetResourceStatus {
  return {
    ...(set === undefined ? countFields(before) : waitReasonFields(set)),
    // A change that arrives while the set ends applies to the next set.
    observedGeneration:
      standing.reason === 'Ending'
        ? (before.observedGeneration ?? metadata.generation)
        : metadata.generation,
    selector: `${SET_LABEL}=${toLabelValue(metadata.name)}`,
    workflowId: setWorkflowId(metadata.name),
    conditions: [
      ready(
        before.conditions?.find(({ type }) => type === 'Ready'),
        standing,
        metadata.generation,
        now,
      ),
    ],
  };
}

function ready(
  before: Condition | undefined,
  { ready: isReady, reason, message }: ReadyStatus,
  observedGeneration: number,
  now: number,
): Condition {
  const status = isReady ? 'True' : 'False';
  const lastTransitionTime =
    before?.status === status
      ? before.lastTransitionTime
      : `${new Date(now).toISOString().slice(0, 19)}Z`;
  return {
    type: 'Ready',
    status,
    reason,
    message: message.slice(0, MAX_MESSAGE),
    observedGeneration,
    lastTransitionTime,
  };
}

function waitReasonFields({
  desired,
  runnerCounts,
  jobs,
  blockedReason,
  waitingFor,
  lastFailure,
}: RunnerSetStatus): RunnerSetResourceStatus {
  const { starting, idle, busy, draining } = runnerCounts;
  return {
    desired,
    replicas: starting + idle + busy + draining,
    starting,
    idle,
    busy,
    draining,
    jobs: { queued: jobs.queued, running: jobs.running },
    ...omitUndefined({ blockedReason, waitingFor, lastFailure }),
  };
}

function countFields({
  desired,
  replicas,
  starting,
  idle,
  busy,
  draining,
  jobs,
  blockedReason,
  waitingFor,
  lastFailure,
}: RunnerSetResourceStatus): RunnerSetResourceStatus {
  return omitUndefined({
    desired,
    replicas,
    starting,
    idle,
    busy,
    draining,
    jobs,
    blockedReason,
    waitingFor,
    lastFailure,
  });
}

/**
 * Returns the JSON merge patch (RFC 7386) that changes the status to this one. Removed fields are
 * `null`.
 * @returns `undefined` if nothing changes
 */
export function statusPatch(
  before: RunnerSetResourceStatus | undefined,
  after: RunnerSetResourceStatus,
): object | undefined {
  return isSame(before ?? {}, after) ? undefined : mergePatch(before ?? {}, after);
}

/** Returns the fields of `after`, and `null` for those that only `before` has, at every depth. */
function mergePatch(before: object, after: object): object {
  const old = new Map<string, unknown>(Object.entries(before));
  const now = new Map<string, unknown>(Object.entries(after));
  const fields = [...new Set([...old.keys(), ...now.keys()])].map((key) => {
    const [from, to] = [old.get(key), now.get(key)];
    return [key, isObject(from) && isObject(to) ? mergePatch(from, to) : (to ?? null)];
  });
  return Object.fromEntries(fields) as object;
}

/**
 * Returns whether two values are equal. The API server returns fields of an object in another
 * order.
 */
function isSame(a: unknown, b: unknown): boolean {
  if (a === null || b === null || typeof a !== 'object' || typeof b !== 'object') return a === b;
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].every((key) =>
    isSame((a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key]),
  );
}
