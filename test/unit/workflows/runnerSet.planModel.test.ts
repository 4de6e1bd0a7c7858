/** Plans of small runner sets in every state of their model (tools/model/setPlans.ts). */
import { expect, test } from '@jest/globals';
import { planSet, type SetPlan } from '../../../workflows/runnerSet/plan.ts';
import { exploreSetPlans, type SetPlanLimits } from '../../../tools/model/setPlans.ts';

const SMALL: SetPlanLimits = { maxDesired: 2, maxRunners: 4 };

test('the plans of small sets keep all limits and reach the desired size', () => {
  const { violations, states } = exploreSetPlans(planSet, SMALL);
  expect(violations).toEqual([]);
  expect(states).toBeGreaterThan(2_000);
});

type Change = (plan: SetPlan, facts: Parameters<typeof planSet>[0]) => SetPlan;

test.each<[string, Change, RegExp]>([
  [
    'one runner too many is started',
    (plan) => (plan.start > 0 ? { ...plan, start: plan.start + 1 } : plan),
    /^more runners are started than desired/m,
  ],
  [
    'the surge is exceeded',
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
    /^more runners are started than the surge allows/m,
  ],
  [
    'draining runners are not counted',
    (plan) => (plan.blockedByMax > 0 ? { ...plan, start: plan.start + plan.blockedByMax } : plan),
    /^more runners are started than the limit allows/m,
  ],
  [
    'idle runners are drained before starting ones',
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
    /^an idle runner is drained although another is still starting/m,
  ],
  [
    'runners are drained in the order of their start',
    (plan, { runners }) => ({
      ...plan,
      drain: runners
        .filter(({ state }) => state !== 'draining')
        .slice(0, plan.drain.length)
        .map(({ workflowId }) => ({ workflowId, reason: '' })),
    }),
    /^a busy runner /m,
  ],
  [
    'no runner is drained',
    (plan) => ({ ...plan, drain: [] }),
    /^the stable set has more runners than desired/m,
  ],
  [
    'idle runners are drained and started endlessly',
    (plan, { runners }) => ({
      ...plan,
      drain: runners
        .filter(({ state }) => state === 'idle')
        .map(({ workflowId }) => ({ workflowId, reason: '' })),
    }),
    /^the set does not become stable/m,
  ],
])('the exploration finds a plan in which %s', (_what, change, expected) => {
  const { violations } = exploreSetPlans((facts) => change(planSet(facts), facts), SMALL);
  expect(violations.join('\n')).toMatch(expected);
});
