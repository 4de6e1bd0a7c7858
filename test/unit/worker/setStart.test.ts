import { expect, test } from '@jest/globals';
import { SET_ROUTING_MEMO, type RunnerSetInput } from '../../../core/contract/index.ts';
import { parseRunnerSetInput } from '../../../core/input/runnerSet.ts';
import { setStartOptions } from '../../../worker/temporal/setStart.ts';

test('a set is started before all runners, with what it covers, and time enough to be read anew', () => {
  const input: RunnerSetInput = {
    name: 'linux',
    replicas: 1,
    template: { repository: 'acme/app', labels: ['linux'] },
  };
  const parsed = parseRunnerSetInput(input, {
    hash: () => '',
    checkSchedule: () => undefined,
    policy: 'elsewhere',
  });
  if (!parsed.ok) throw new Error('the input is refused');
  expect(setStartOptions(input, parsed.spec, 'ours')).toMatchObject({
    workflowId: 'set-linux',
    taskQueue: 'ours',
    args: [input],
    priority: { priorityKey: 1, fairnessKey: 'acme/app' },
    workflowTaskTimeout: 30_000,
    memo: { [SET_ROUTING_MEMO]: { scope: 'acme/app', scopeKind: 'repository' } },
  });
});
