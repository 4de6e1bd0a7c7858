/** A set reaches its goal in bounded time, whichever messages between it and its runners are lost. */
import { describe, expect, test } from '@jest/globals';
import { decideSet } from '../../../workflows/runnerSet/decide.ts';
import { setStatus } from '../../../workflows/runnerSet/status.ts';
import { SetModel, type Word } from '../../support/setModel.ts';

const MINUTE = 60_000;
/** Lists are five minutes apart, a lost message is repeated after two of them, and a scale-down takes ten minutes. */
const BOUND = 25 * MINUTE;

/** A set of three that rolls another template out, shrinks to one, and ends. At each stage the runners match in bounded time, and the set knows it. */
function life(ephemeral: boolean, loses: (word: Word, index: number) => boolean): SetModel {
  const model = new SetModel(
    { name: 'linux', replicas: 3, template: { organization: 'acme', ephemeral } },
    loses,
  );
  const comesTo = (wanted: number): void => {
    const isThere = (): boolean => {
      const { runners, blockedReason } = setStatus(model.state, model.now);
      const alike = runners.every(
        ({ workflowId, state, templateHash }) =>
          state === 'idle' &&
          templateHash === model.state.facts.spec.templateHash &&
          model.runners.get(workflowId)?.phase === 'Idle',
      );
      return (
        alike &&
        runners.length === wanted &&
        model.count() === wanted &&
        blockedReason === undefined
      );
    };
    for (const since = model.now; !isThere(); model.pass(10_000)) {
      if (model.now - since > BOUND)
        throw new Error(
          `not at ${wanted} runners: ${JSON.stringify({ knows: setStatus(model.state, model.now), there: [...model.runners.values()] })}`,
        );
      for (const runner of model.runners.values()) model.comeUp(runner);
    }
  };
  comesTo(3);
  model.declare({ template: { ...model.input.template, labels: ['v2'] } });
  comesTo(3);
  model.declare({ replicas: 1 });
  comesTo(1);
  model.state.end('the test is over');
  comesTo(0);
  expect(decideSet(model.state, model.now).ended).toBe(true);
  return model;
}

describe.each([
  ['static', false],
  ['ephemeral', true],
])('%s runners', (_kind, ephemeral) => {
  const { said } = life(ephemeral, () => false);
  test.each((Object.entries(said) as [Word, number][]).filter(([word]) => word !== 'busy'))(
    'a lost message "%s", the first, the second, … of %d; or two in a row',
    (word, count) => {
      expect(count).toBeGreaterThan(3);
      for (let lost = 0; lost < count; lost++) {
        for (const inARow of [1, 2])
          expect(
            life(ephemeral, (one, index) => one === word && index >= lost && index < lost + inARow)
              .said[word],
          ).toBeGreaterThanOrEqual(lost + 1);
      }
    },
  );
});
