/** A way to something that is wrong, as a numbered story. */
import type { Wrong } from './explore.ts';
import type { Mind } from './mind.ts';
import { FIELDS, type State } from './state.ts';

const NAMES = Object.keys(FIELDS) as readonly (keyof typeof FIELDS)[];

export function tell({ what, setup, story }: Wrong, mind: Mind): string {
  const lines = story.map(({ move, state }, index) => {
    const before = story[index - 1]?.state;
    const changed =
      before === undefined
        ? []
        : NAMES.filter((name) => before[name] !== state[name]).map(
            (name) => `${name}: ${String(state[name])}`,
          );
    return `${String(index).padStart(3)}. ${move}${changed.length === 0 ? '' : `\n       ${changed.join(', ')}`}${thoughts(before, state, mind)}`;
  });
  return `\n${setup} runner: ${what}\n${lines.join('\n')}\n`;
}

function thoughts(before: State | undefined, state: State, mind: Mind): string {
  const lines: string[] = [];
  if (
    before !== undefined &&
    before.plan !== state.plan &&
    state.at !== 'awaiting gone' &&
    state.at !== 'over'
  ) {
    const { action } = mind.plan(state);
    lines.push(
      `decides, by row ${action.row}: ${action.kind}${action.kind === 'wait' ? ` until ${action.until}` : ''} (${action.reason})`,
    );
  }
  if (state.at === 'over') lines.push(`the verdict: ${mind.verdict(state).message}`);
  return lines.map((line) => `\n       ${line}`).join('');
}
