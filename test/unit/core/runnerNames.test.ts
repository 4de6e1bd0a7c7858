import { expect, test } from '@jest/globals';
import { runnerName, workflowIdFromRunnerName } from '../../../core/domain/runnerName.ts';
import {
  MAX_SET_NAME,
  randomSuffix,
  runnerWorkflowId,
  setNameFromRunnerName,
} from '../../../core/domain/setRunnerNames.ts';
import { parseRunnerInput } from '../../../core/input/runner.ts';
import { randomOf, randomSeed } from '../../support/random.ts';

/** The name that its workflow would give it. */
function nameOf(workflowId: string, attempt: number, input: object = {}): string {
  const parsed = parseRunnerInput(
    { organization: 'acme', ...input },
    { workflowId, nameHash: '0a1b2c3d4e' },
  );
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return runnerName(parsed.spec.name, parsed.spec.nameHash, attempt);
}

const SETS = [
  'a',
  'linux',
  'Linux_x64.big',
  'a-b-c',
  `x-${'abcdefghij'}-0a1b2c3d4e`,
  'x'.repeat(MAX_SET_NAME),
];

test.each(SETS)(
  'of a set called %s: workflow and set follow from the name, in every attempt',
  (set) => {
    const random = randomOf(randomSeed());
    for (const attempt of [1, 2, 9_999]) {
      const workflowId = runnerWorkflowId(
        set,
        randomSuffix(() => random(1_000) / 1_000),
      );
      const name = nameOf(workflowId, attempt, { set });
      expect([workflowIdFromRunnerName(name), setNameFromRunnerName(name)]).toEqual([
        workflowId,
        set,
      ]);
    }
  },
);

test.each([['runner-hello'], ['runner-brisk-otter-7f3a'], [`runner-${'x'.repeat(50)}`]])(
  'of %s without a set',
  (workflowId) => {
    const name = nameOf(workflowId, 2);
    expect([workflowIdFromRunnerName(name), setNameFromRunnerName(name)]).toEqual([
      workflowId,
      undefined,
    ]);
    expect(
      workflowIdFromRunnerName(nameOf(workflowId, 1, { name: workflowId.slice('runner-'.length) })),
    ).toBe(workflowId);
  },
);

test.each([
  'linux-abcdefghij',
  'linux-abcdefghijk-0a1b2c3d4e',
  '-abcdefghij-0a1b2c3d4e',
  'GitHub Actions 7',
])('%j does not belong to a set', (name) => {
  expect(setNameFromRunnerName(name)).toBeUndefined();
});
