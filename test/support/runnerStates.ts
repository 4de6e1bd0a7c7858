import type { RunnerInput } from '../../core/contract/index.ts';
import type { PodView } from '../../core/domain/pod.ts';
import { parseRunnerInput } from '../../core/input/runner.ts';
import { RunnerState } from '../../workflows/runner/state.ts';

export const BORN = Date.parse('2026-03-01T12:00:00Z');

/** A running pod under the supervisor, which reports whether its runner is online and busy. */
export const RUNNING_POD: PodView = {
  name: 'p',
  uid: 'u',
  workflowId: 'runner-1',
  scheduled: true,
  createdAt: new Date(BORN).toISOString(),
  startedAt: new Date(BORN).toISOString(),
  ended: false,
  deleted: false,
  terminating: false,
  online: true,
  busy: false,
};

/** The state of an admitted runner, outside of any workflow. */
export function runnerState(input: Partial<RunnerInput> = {}, pod?: PodView): RunnerState {
  const parsed = parseRunnerInput(
    { ...(input.ciServer === 'none' ? {} : { organization: 'acme' }), ...input },
    { workflowId: 'runner-1', nameHash: '0a1b2' },
  );
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  const state = new RunnerState('runner-1', 'f', BORN);
  state.admit({
    ...parsed.spec,
    location: { compute: 'kubernetes', cluster: 'c', namespace: 'ci', installation: 'i' },
  });
  if (pod !== undefined) state.runner.pod = pod;
  return state;
}
