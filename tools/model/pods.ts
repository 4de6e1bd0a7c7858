/** From the model's pod to what the API server shows of it, and what the adapter makes of that. */
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
import { hasJob, isCommand, isDone, isLost, isSilent, isStatic, type State } from './state.ts';

const MINUTE_MS = 60_000;
/** When the container started. Everything else happens at one of five times, whichever is right for its order. */
export const STARTED_MS = Date.parse('2026-01-01T00:00:00Z');
const GRACE_SECONDS = 30;
const EXIT_CODES = { unknown: 0, '0': 0, '1': 1, '137, out of memory': 137, '143': 143 } as const;

/** Told to go 2 minutes after its start, or 12: what happens before and after lies on either side of it. */
const toldAtMs = ({ old }: State): number => STARTED_MS + (old ? 12 : 2) * MINUTE_MS;

/** What a clock shows now. Nothing becomes old once it was told to go. */
export function clockOf({ old, told }: State): number {
  return STARTED_MS + ((old ? 10 : 0) + (told === 'no' ? 1 : 3)) * MINUTE_MS;
}

/** What a worker knows that has seen the pod before (`watch`), or that has only just started. */
export type Knowledge = 'watch' | 'none';

/** The pod as a worker tells of it now. */
export function viewOf(state: State, knowledge: Knowledge): PodView {
  if (state.pod === 'gone')
    return knowledge === 'none'
      ? { ...deletedPod({ name: 'p', uid: 'u' }), workflowId: 'w' }
      : deletedPodView(viewOf({ ...state, pod: lastPodOf(state) }, 'watch'));
  const seenMs = clockOf(state) - (state.problem === 'image' ? 0 : MINUTE_MS);
  return toPodView(
    podOf(state) as unknown as Parameters<typeof toPodView>[0],
    iso(seenMs),
    knowledge === 'none' ? undefined : watchedView(state),
  );
}

/** What it was when it was seen last: an exit status is known of one that had ended by then. */
function lastPodOf({ exit, started }: State): 'pending' | 'running' | 'ended' {
  if (exit !== 'unknown') return 'ended';
  return started ? 'running' : 'pending';
}

/** The watcher's last view: only what its probes told is made use of. */
function watchedView(state: State): PodView | undefined {
  const { watched } = state;
  if (watched === 'nothing') return undefined;
  const shown = {
    down: { online: false, busy: false },
    ready: { online: true, busy: false },
    busy: { online: true, busy: true },
  }[watched];
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
    ...(isSilent(state) ? {} : shown),
  };
}

const iso = (atMs: number): string => new Date(atMs).toISOString();

function phaseOf(pod: State['pod']): string {
  if (pod === 'running') return 'Running';
  return pod === 'ended' ? 'Failed' : 'Pending';
}

/** As much of a V1Pod as is read. */
function podOf(state: State): object {
  const { told, pod, problem } = state;
  const runnerProbes = isStatic(state) ? RUNNER_PROBES : ONE_JOB_PROBES;
  const probes = isCommand(state) ? COMMAND_PROBES : runnerProbes;
  const deleted =
    told === 'no'
      ? {}
      : {
          deletionTimestamp: iso(toldAtMs(state) + GRACE_SECONDS * 1_000),
          deletionGracePeriodSeconds: GRACE_SECONDS,
        };
  const annotations = {
    [WORKFLOW_ID_ANNOTATION]: 'w',
    ...(isSilent(state) ? {} : { [PROBES_ANNOTATION]: probes }),
  };
  const scheduled = problem === 'unschedulable' ? 'False' : 'True';
  return {
    metadata: { name: 'p', uid: 'u', creationTimestamp: iso(STARTED_MS), annotations, ...deleted },
    spec: problem === 'unschedulable' ? {} : { nodeName: 'n' },
    status: {
      phase: phaseOf(pod),
      conditions: [
        { type: 'PodScheduled', status: scheduled },
        ...(told === 'evicted'
          ? [
              {
                type: 'DisruptionTarget',
                status: 'True',
                reason: 'EvictionByEvictionAPI',
                lastTransitionTime: iso(toldAtMs(state)),
              },
            ]
          : []),
      ],
      containerStatuses: [{ name: 'runner', ...containerOf(state) }],
    },
  };
}

function containerOf(state: State): object {
  const { pod, problem, shown, exit } = state;
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
      started: shown !== 'down',
      ready: shown === 'ready',
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
        ...(state.recorded ? { message: recordOf(state) } : {}),
      },
    },
  };
}

function recordedJob(state: State): string {
  if (isDone(state)) return 'completed';
  if (!isLost(state) && !hasJob(state)) return 'none';
  return state.interrupted ? 'interrupted' : 'running';
}

/** The supervisor's termination message (docs/supervisor.md). */
function recordOf(state: State): string {
  const { exit, interrupted, told } = state;
  const stopReason = told === 'evicted' ? 'evicted' : 'cancelled';
  const reason = interrupted ? stopReason : null;
  const job = isCommand(state) ? {} : { job: recordedJob(state) };
  return JSON.stringify({ exitCode: EXIT_CODES[exit], reason, ...job });
}
