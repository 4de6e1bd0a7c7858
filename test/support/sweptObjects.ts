/** Objects for tables of sweep tests: without anything to repair. */
import type { PodView } from '../../core/domain/pod.ts';
import type {
  OwnerWorkflow,
  RunnerWorkflow,
  ObservedRegistration,
} from '../../core/sweep/facts.ts';
import { parseSweepInput, type SweepSpec } from '../../core/input/sweep.ts';
import type { OwnedObject } from '../../core/sweep/ownedObject.ts';

export const SECOND = 1_000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const NOW = Date.parse('2020-01-10T12:00:00Z');
export const ago = (ms: number): string => new Date(NOW - ms).toISOString();

/** The limits of production. */
export const SPEC: SweepSpec = specOf({});

export function specOf(input: object): SweepSpec {
  const parsed = parseSweepInput(input);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return parsed.spec;
}

export const view: PodView = {
  name: 'p',
  uid: 'u',
  workflowId: 'w',
  scheduled: true,
  createdAt: ago(HOUR),
  startedAt: ago(HOUR),
  ended: false,
  deleted: false,
  terminating: false,
  online: true,
  busy: false,
};

export const object = (more: Partial<OwnedObject> = {}): OwnedObject => ({
  kind: 'secret', name: 'p', namespace: 'n', uid: 'u', resourceVersion: '1', createdAtMs: NOW - HOUR, onHold: false, terminating: false, identity: { workflowId: 'w', firstRunId: 'f', attempt: 1 }, ...more,
}); // prettier-ignore

/** Returns the pod of a CI runner, unless specified otherwise. */
export const pod = (seen: Partial<PodView> = {}, more: Partial<OwnedObject> = {}): OwnedObject =>
  object({
    kind: 'pod',
    pod: { ...view, ...seen },
    terminating: seen.terminating === true,
    jobTimeoutCapMs: 24 * HOUR,
    registration: { name: 'w-0123456789' },
    ...more,
  });

export const RUNNING: OwnerWorkflow = { state: 'running' };
export const FINISHED: OwnerWorkflow = {
  state: 'finished',
  closedAtMs: NOW - HOUR,
  how: 'has ended',
};
export const TERMINATED: OwnerWorkflow = {
  state: 'broken off',
  closedAtMs: NOW - HOUR,
  how: 'was terminated by me: because',
};
export const UNKNOWN: OwnerWorkflow = { state: 'unknown', how: 'is not known to Temporal' };

export const runnerWorkflow = (more: Partial<RunnerWorkflow> = {}): RunnerWorkflow => ({
  workflowId: 'w', runId: 'r', taskQueue: 'q', startedAtMs: NOW - HOUR, phase: 'Idle', runnerName: 'w-0123456789', pods: [pod()], hasPoller: true, willResume: false, ...more,
}); // prettier-ignore

/** Returns a registration without a workflow and without a pod. */
export const ghost = (more: Partial<ObservedRegistration> = {}): ObservedRegistration => ({
  scope: { kind: 'organization', name: 'acme' }, credential: 'default', id: '7', name: 'w-0123456789', online: false, busy: false, proof: 'label', hasRunner: false, hasPod: false, ...more,
}); // prettier-ignore
