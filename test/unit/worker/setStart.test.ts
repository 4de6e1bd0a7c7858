import { expect, test } from '@jest/globals';
import {
  SET_CAPACITY_MEMO,
  SET_ROUTING_MEMO,
  type RunnerSetInput,
} from '../../../core/contract/index.ts';
import { parseRunnerSetInput } from '../../../core/input/runnerSet.ts';
import { setStartOptions } from '../../../worker/temporal/setStart.ts';

test('a set is started with a higher priority than runners, with its labels in the memo, and with a long enough task timeout', () => {
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

test('a set with a scale set has capacity 0 and no job of the webhook, before a worker runs it', () => {
  const input: RunnerSetInput = {
    name: 'gpu',
    max: 5,
    template: { organization: 'acme', labels: ['gpu'], demand: 'scaleSet' },
  };
  const parsed = parseRunnerSetInput(input, { hash: () => '', checkSchedule: () => undefined });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  expect(setStartOptions(input, parsed.spec, 'ours').memo).toEqual({
    [SET_ROUTING_MEMO]: { labels: ['gpu'], scope: 'acme', scopeKind: 'organization' },
    [SET_CAPACITY_MEMO]: 0,
  });
});
