import { SetState } from '../../workflows/runnerSet/state.ts';

/**
 * Returns the set in its next run: carried state goes through JSON, and the rest comes from the
 * declaration.
 */
export function nextRun(state: SetState): SetState {
  const { spec, schedule, at } = state.facts;
  return SetState.restore(JSON.parse(JSON.stringify(state.carry())), {
    spec,
    declaration: state.currentDeclaration(),
    schedule,
    at,
  });
}
