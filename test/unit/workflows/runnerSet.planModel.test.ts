/** What a set's plan comes to, whatever its runners do (tools/model/plan.ts). */
import { expect, test } from '@jest/globals';
import { planSet, type SetPlan } from '../../../workflows/runnerSet/plan.ts';
import { explorePlan, type PlanLimits } from '../../../tools/model/plan.ts';

const SMALL: PlanLimits = { largest: 2, runners: 4 };

test('every set of few runners: never too many, nobody leaves who should not, and it comes to what is wanted', () => {
  const { wrongs, states } = explorePlan(planSet, SMALL);
  expect(wrongs).toEqual([]);
  expect(states).toBeGreaterThan(2_000);
});

type Change = (plan: SetPlan, facts: Parameters<typeof planSet>[0]) => SetPlan;

test.each<[string, Change, RegExp]>([
  [
    'one that starts one too many',
    (plan) => (plan.start > 0 ? { ...plan, start: plan.start + 1 } : plan),
    /^more are started than wanted/m,
  ],
  [
    'one that goes beyond the surge',
    (plan, { runners, desired }) => ({
      ...plan,
      start: Math.max(
        0,
        desired -
          runners.filter(
            ({ templateHash: generation, state }) => generation === 'new' && state !== 'draining',
          ).length,
      ),
    }),
    /^more are started than the surge allows/m,
  ],
  [
    'one that counts those that leave as gone',
    (plan) => (plan.blockedByMax > 0 ? { ...plan, start: plan.start + plan.blockedByMax } : plan),
    /^more are started than may be there/m,
  ],
  [
    'one that scales idle ones down first',
    (plan, { runners }) => ({
      ...plan,
      drain:
        plan.drain.length === 0
          ? []
          : runners
              .filter(({ state, onHold: held }) => state === 'idle' && !held)
              .slice(0, plan.drain.length)
              .map(({ workflowId }) => ({ workflowId, reason: '' })),
    }),
    /^an idle runner is to leave while one that is not up yet could/m,
  ],
  [
    'one that drains whoever comes first',
    (plan, { runners }) => ({
      ...plan,
      drain: runners
        .filter(({ state }) => state !== 'draining')
        .slice(0, plan.drain.length)
        .map(({ workflowId }) => ({ workflowId, reason: '' })),
    }),
    /^a busy runner /m,
  ],
  ['one that never drains', (plan) => ({ ...plan, drain: [] }), /^it rests with more than wanted/m],
  [
    'one that drains and starts for ever',
    (plan, { runners }) => ({
      ...plan,
      drain: runners
        .filter(({ state }) => state === 'idle')
        .map(({ workflowId }) => ({ workflowId, reason: '' })),
    }),
    /^it does not come to rest/m,
  ],
])('it finds what is wrong: %s', (_what, change, expected) => {
  const { wrongs } = explorePlan((facts) => change(planSet(facts), facts), SMALL);
  expect(wrongs.join('\n')).toMatch(expected);
});
