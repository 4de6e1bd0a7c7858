/** The view of the pod in a state: as the API server returns it, and as the adapter maps it. */
import { deletedPod } from '../../activities/runner/pods.ts';
import { deletedPodView } from '../../activities/compute/deletedPodView.ts';
import {
  COMMAND_PROBES,
  ONE_JOB_PROBES,
  PROBES_ANNOTATION,
  RUNNER_PROBES,
  WORKFLOW_ID_ANNOTATION,
} from '../../activities/compute/kubernetes/metadata.ts';
import { toPodView } from '../../activities/compute/kubernetes/podView.ts';
import type { PodView } from '../../core/domain/pod.ts';
import {
  hasJob,
  isCommand,
  isDone,
  isLost,
  lacksSupervisor,
  isStatic,
  type State,
} from './state.ts';

const MINUTE_MS = 60_000;
/** Start of the container (ms since the epoch). The model has five times, enough for the order. */
export const STARTED_MS = Date.parse('2026-01-01T00:00:00Z');
const GRACE_SECONDS = 30;
const EXIT_CODES = { unknown: 0, '0': 0, '1': 1, '137, out of memory': 137, '143': 143 } as const;

/**
 * Time of the deletion: a minute after the clock of states before it, a minute before those after.
 */
const deletedAtMs = ({ pastRegistrationDeadline }: State): number =>
  STARTED_MS + (pastRegistrationDeadline ? 12 : 2) * MINUTE_MS;

/** Returns the time of a state (ms since the epoch). */
export function clockOf({ pastRegistrationDeadline, deletedBy }: State): number {
  const minutes = (pastRegistrationDeadline ? 10 : 0) + (deletedBy === 'none' ? 1 : 3);
  return STARTED_MS + minutes * MINUTE_MS;
}

/** Whether the worker has a previous view of the pod (`warm`), or has just started (`cold`). */
export type WorkerCache = 'warm' | 'cold';

/** Returns the view of the pod that a worker with this cache returns. */
export function podView(state: State, cache: WorkerCache): PodView {
  if (state.pod === 'gone')
    return cache === 'cold'
      ? { ...deletedPod({ name: 'p', uid: 'u' }), workflowId: 'w' }
      : deletedPodView(podView({ ...state, pod: lastPodOf(state) }, 'warm'));
  const seenMs = clockOf(state) - (state.problem === 'image' ? 0 : MINUTE_MS);
  return toPodView(
    podOf(state) as unknown as Parameters<typeof toPodView>[0],
    iso(seenMs),
    cache === 'cold' ? undefined : watchedView(state),
  );
}

/** Returns the last phase of a pod that is gone. If its exit code is known, it had ended. */
function lastPodOf({ exit, started }: State): 'pending' | 'running' | 'ended' {
  if (exit !== 'unknown') return 'ended';
  return started ? 'running' : 'pending';
}

/** Returns the watcher's previous view. The adapter reads only its probes. */
function watchedView(state: State): PodView | undefined {
  const { watcherView } = state;
  if (watcherView === 'nothing') return undefined;
  const probes = {
    down: { online: false, busy: false },
    ready: { online: true, busy: false },
    busy: { online: true, busy: true },
  }[watcherView];
  return {
    name: 'p',
    uid: 'u',
    workflowId: 'w',
    scheduled: true,
    createdAt: iso(STARTED_MS),
    startedAt: iso(STARTED_MS),
    ended: false,
    deleted: false,
    terminating: false,
    ...(lacksSupervisor(state) ? {} : probes),
  };
}

const iso = (atMs: number): string => new Date(atMs).toISOString();

function phaseOf(pod: State['pod']): string {
  if (pod === 'running') return 'Running';
  return pod === 'ended' ? 'Failed' : 'Pending';
}

/** Returns the fields of a V1Pod that the adapter reads. */
function podOf(state: State): object {
  const { deletedBy, pod, problem } = state;
  const runnerProbes = isStatic(state) ? RUNNER_PROBES : ONE_JOB_PROBES;
  const probes = isCommand(state) ? COMMAND_PROBES : runnerProbes;
  const deletion =
    deletedBy === 'none'
      ? {}
      : {
          deletionTimestamp: iso(deletedAtMs(state) + GRACE_SECONDS * 1_000),
          deletionGracePeriodSeconds: GRACE_SECONDS,
        };
  const annotations = {
    [WORKFLOW_ID_ANNOTATION]: 'w',
    ...(lacksSupervisor(state) ? {} : { [PROBES_ANNOTATION]: probes }),
  };
  const scheduled = problem === 'unschedulable' ? 'False' : 'True';
  return {
    metadata: {
      name: 'p',
      uid: 'u',
      creationTimestamp: iso(STARTED_MS),
      annotations,
      ...deletion,
    },
    spec: problem === 'unschedulable' ? {} : { nodeName: 'n' },
    status: {
      phase: phaseOf(pod),
      conditions: [
        { type: 'PodScheduled', status: scheduled },
        ...(deletedBy === 'eviction'
          ? [
              {
                type: 'DisruptionTarget',
                status: 'True',
                reason: 'EvictionByEvictionAPI',
                lastTransitionTime: iso(deletedAtMs(state)),
              },
            ]
          : []),
      ],
      containerStatuses: [{ name: 'runner', ...containerOf(state) }],
    },
  };
}

function containerOf(state: State): object {
  const { pod, problem, published, exit } = state;
  const startedAt = iso(STARTED_MS);
  if (pod === 'pending')
    return {
      state: {
        waiting: {
          reason: {
            none: 'ContainerCreating',
            unschedulable: '',
            image: 'ErrImagePull',
            'image for 30 s': 'ErrImagePull',
            'image name': 'InvalidImageName',
          }[problem],
        },
      },
    };
  if (pod === 'running')
    return {
      started: published !== 'down',
      ready: published === 'ready',
      state: { running: { startedAt } },
    };
  if (exit === 'unknown') return { state: {} };
  const plainReason = exit === '0' ? 'Completed' : 'Error';
  const reason = exit === '137, out of memory' ? 'OOMKilled' : plainReason;
  return {
    state: {
      terminated: {
        exitCode: EXIT_CODES[exit],
        reason,
        startedAt,
        finishedAt: startedAt,
        ...(state.exitRecorded ? { message: recordOf(state) } : {}),
      },
    },
  };
}

function recordedJob(state: State): string {
  if (isDone(state)) return 'completed';
  if (!isLost(state) && !hasJob(state)) return 'none';
  return state.interrupted ? 'interrupted' : 'running';
}

/** Returns the supervisor's termination message (docs/supervisor.md). */
function recordOf(state: State): string {
  const { exit, interrupted, deletedBy } = state;
  const stopReason = deletedBy === 'eviction' ? 'evicted' : 'cancelled';
  const reason = interrupted ? stopReason : null;
  const job = isCommand(state) ? {} : { job: recordedJob(state) };
  return JSON.stringify({ exitCode: EXIT_CODES[exit], reason, ...job });
}
