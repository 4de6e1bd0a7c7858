/** Known state of a set's runners, in a form that can be compared with a list of them. Pure. */
import type { RunnerPhase, SetRunnerStatus } from '../contract/index.ts';
import { runnerSuffix } from './setRunnerNames.ts';

type State = SetRunnerStatus['state'];

/** Runner with the fields that a list can change. */
export interface ComparableRunner {
  readonly workflowId: string;
  readonly state: State;
  /** Name at the CI server, if it is known. */
  readonly runnerName?: string;
}

const LEAVING: ReadonlySet<RunnerPhase> = new Set([
  'Draining',
  'Unregistering',
  'TearingDown',
  'Gone',
]);

/** Returns the state of a runner in this phase, as visibility alone shows it. */
export function stateOfPhase(phase: RunnerPhase): State {
  if (LEAVING.has(phase)) return 'draining';
  if (phase === 'Busy') return 'busy';
  return phase === 'Idle' ? 'idle' : 'starting';
}

/** Returns a phase for which {@link stateOfPhase} returns this state. */
export const phaseOfState = (state: State): RunnerPhase =>
  (({ starting: 'Provisioning', idle: 'Idle', busy: 'Busy', draining: 'Draining' }) as const)[
    state
  ];

/**
 * Returns a text of about 25 characters. Two runners of a set have the same text if no list needs
 * to contain the second for someone who knows the first.
 */
export function comparableText(
  set: string,
  { workflowId, state, runnerName = '' }: ComparableRunner,
): string {
  const suffix = runnerSuffix(set, workflowId) ?? workflowId;
  const prefix = `${set}-${suffix}-`;
  const name = runnerName.startsWith(prefix) ? runnerName.slice(prefix.length) : `/${runnerName}`;
  return `${suffix} ${state.charAt(0)} ${name}`;
}
