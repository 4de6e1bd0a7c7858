/** How a set reports its queue checks: an incomplete check must differ from one without jobs. */
import { expect, test } from '@jest/globals';
import type { QueueCheckResult } from '../../../core/contract/index.ts';
import { queueCheckText } from '../../../core/domain/queueCheckText.ts';
import { parseQueueCheckResult } from '../../../workflows/runnerSet/jobSignals.ts';
import { QUEUE_CHECK_UNSUPPORTED } from '../../../workflows/runnerSet/decide.ts';
import { SetState } from '../../../workflows/runnerSet/state.ts';
import { commandResult, setStatus } from '../../../workflows/runnerSet/status.ts';
import { nextRun } from '../../support/nextRun.ts';
import { setSpec } from '../../support/setModel.ts';

const MINUTE = 60_000;
const UNTIL = 60 * MINUTE;

type Step = Partial<QueueCheckResult> | string;

/** @param steps - checks at 1, 2, … minutes: the result or the reason of the failure */
function checked(steps: readonly Step[]): SetState {
  const input = { name: 'linux', minIdle: 0, max: 3, template: { organization: 'acme' } };
  const state = SetState.begin(setSpec(input), input, {}, 0);
  for (const [index, step] of steps.entries()) {
    const at = (index + 1) * MINUTE;
    if (typeof step === 'string') state.jobReports.onQueueCheckFailed(step, at);
    else {
      const body = { checkedAt: at, jobs: [], complete: false, absent: [], endedSets: [], ...step };
      const look = parseQueueCheckResult(JSON.parse(JSON.stringify(body)));
      if (look === undefined) throw new Error('not read');
      state.jobReports.onQueueChecked(look, at);
    }
    state.updateDemand(at);
  }
  return state;
}

test.each<[string, Step[], RegExp | undefined]>([
  ['before the first', [], undefined],
  ['complete', [{ complete: true }], undefined],
  ['incomplete', [{ complete: true }, {}, {}], /^incomplete since 1970-01-01T00:02:\S+: not all/],
  [
    'the budget is spent',
    [{}, { budgetUntil: UNTIL }],
    /^incomplete since \S+00:01:\S+: the request budget .* until 1970-01-01T01:00:00.000Z$/,
  ],
  ['complete again', [{ budgetUntil: UNTIL }, { complete: true }], undefined],
  ['incomplete again', [{}, { complete: true }, {}], /^incomplete since \S+00:03:/],
  ['failed', ['refused'], /^incomplete since \S+00:01:\S+: the last check failed: refused$/],
  ['successful after a failure', ['refused', { complete: true }], undefined],
  ['an enterprise', [{ unsupported: true }], /the CI server has no list of jobs for this scope/],
  ['a CI server without lists', [QUEUE_CHECK_UNSUPPORTED], /the CI server has no list of jobs/],
  ['a part of a check that continues', [{ complete: true }, { continues: true }], undefined],
  ['an invalid time', [{ budgetUntil: 1e300 }], /: not all jobs of the scope can be listed$/],
])('%s', (_what, steps, text) => {
  for (const state of [checked(steps), nextRun(checked(steps))]) {
    const shown = queueCheckText(setStatus(state, 0).queueCheck);
    const matching: unknown = expect.stringMatching(text ?? '');
    expect(shown).toEqual(text === undefined ? undefined : matching);
    expect(commandResult(state, 0).queueCheck).toEqual(setStatus(state, 0).queueCheck);
  }
});
