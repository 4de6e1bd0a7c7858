import { SetState } from '../../workflows/runnerSet/state.ts';

/** The set as its next run has it: what is carried goes through JSON, and what it is comes from the declaration. */
export function nextRun(state: SetState): SetState {
  const { spec, schedule, at } = state.facts;
  return SetState.restore(JSON.parse(JSON.stringify(state.carry())), {
    spec,
    declaration: state.currentDeclaration(),
    schedule,
    at,
  });
}
