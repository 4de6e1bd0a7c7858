/** A set reaches its goal in bounded time, whichever messages between it and its runners are lost. */
import { describe, expect, test } from '@jest/globals';
import { decideSet } from '../../../workflows/runnerSet/decide.ts';
import { setStatus } from '../../../workflows/runnerSet/status.ts';
import { SetModel, type MessageKind } from '../../support/setModel.ts';

const MINUTE = 60_000;
/** Lists are five minutes apart, a lost message is repeated after two of them, and a scale-down takes ten minutes. */
const BOUND = 25 * MINUTE;

/** A set of three that rolls another template out, shrinks to one, and ends. At each stage the runners match in bounded time, and the set knows it. */
function rolloutAndEnd(
  ephemeral: boolean,
  loses: (message: MessageKind, index: number) => boolean,
): SetModel {
  const model = new SetModel(
    { name: 'linux', replicas: 3, template: { organization: 'acme', ephemeral } },
    loses,
  );
  const reaches = (wanted: number): void => {
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
      for (const runner of model.runners.values()) model.comeOnline(runner);
    }
  };
  reaches(3);
  model.declare({ template: { ...model.input.template, labels: ['v2'] } });
  reaches(3);
  model.declare({ replicas: 1 });
  reaches(1);
  model.state.end('the test is over');
  reaches(0);
  expect(decideSet(model.state, model.now).ended).toBe(true);
  return model;
}

describe.each([
  ['static', false],
  ['ephemeral', true],
])('%s runners', (_kind, ephemeral) => {
  const { sent } = rolloutAndEnd(ephemeral, () => false);
  test.each(
    (Object.entries(sent) as [MessageKind, number][]).filter(([message]) => message !== 'busy'),
  )('a lost message "%s", the first, the second, … of %d; or two in a row', (message, count) => {
    expect(count).toBeGreaterThan(3);
    for (let lost = 0; lost < count; lost++) {
      for (const inARow of [1, 2])
        expect(
          rolloutAndEnd(
            ephemeral,
            (one, index) => one === message && index >= lost && index < lost + inARow,
          ).sent[message],
        ).toBeGreaterThanOrEqual(lost + 1);
    }
  });
});
