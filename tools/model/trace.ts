/** Violations of invariants, with the trace that leads to each. */
import { FIELDS, type Setup, type State } from './state.ts';
import type { WorkflowModel } from './workflowModel.ts';

/** A transition and the state after it. The first step of a trace has no transition. */
export interface Step {
  readonly transition: string;
  readonly state: State;
}

/** A violated invariant, and the shortest trace to the first state that violates it. */
export interface Violation {
  readonly message: string;
  readonly setup: Setup;
  /** Number of states or steps that violate it. */
  count: number;
  readonly trace: readonly Step[];
}

/** Returns a key that is the same for the same violation of the same kind of runner. */
export const violationKey = ({ setup, message }: Pick<Violation, 'setup' | 'message'>): string =>
  `${setup}: ${message}`;

const NAMES = Object.keys(FIELDS) as readonly (keyof typeof FIELDS)[];

/** Returns the violation as text: a numbered list of transitions, each with what it changed. */
export function formatViolation(
  { message, setup, trace }: Violation,
  workflow: WorkflowModel,
): string {
  const steps = trace.map(({ transition, state }, index) => {
    const previous = trace[index - 1]?.state;
    const details = [changedFields(previous, state), ...decisions(previous, state, workflow)];
    return [
      `${String(index).padStart(3)}. ${transition}`,
      ...details.filter((detail) => detail !== '').map((detail) => `       ${detail}`),
    ].join('\n');
  });
  return `\n${setup} runner: ${message}\n${steps.join('\n')}\n`;
}

function changedFields(previous: State | undefined, state: State): string {
  if (previous === undefined) return '';
  return NAMES.filter((name) => previous[name] !== state[name])
    .map((name) => `${name}: ${String(state[name])}`)
    .join(', ');
}

function decisions(previous: State | undefined, state: State, workflow: WorkflowModel): string[] {
  if (state.stage === 'completed') return [`verdict: ${workflow.verdict(state).message}`];
  if (previous === undefined || previous.decision === state.decision) return [];
  if (state.stage === 'awaiting deletion') return [];
  const { action } = workflow.decision(state);
  const until = action.kind === 'wait' ? ` until ${action.until}` : '';
  return [`decision (row ${action.row}): ${action.kind}${until} (${action.reason})`];
}
