/** `holdfast decommission` with job groups that do not answer. */
import { expect, test } from '@jest/globals';
import type { Client } from '@temporalio/client';
import { decommission } from '../../cli/decommission/decommission.ts';
import { Output } from '../../cli/shared/output.ts';
import type { Session } from '../../cli/shared/session.ts';
import { JOB_GROUP_WORKFLOW, type JobGroupStatus } from '../../core/contract/index.ts';
import { grpcError } from '../support/grpcError.ts';

const DEADLINE_EXCEEDED = 4;
const FAILED_PRECONDITION = 9;

test.each([
  ['is paused', 'PAUSED', grpcError(FAILED_PRECONDITION, 'workflow is paused')],
  ['has no worker', 'RUNNING', grpcError(DEADLINE_EXCEEDED, 'deadline exceeded')],
])('a job group that %s is asked again', async (_what, name, error) => {
  const answers: (Error | Partial<JobGroupStatus>)[] = [error, { queued: false }];
  let isOpen = true;
  const group = {
    async query() {
      const answer = answers.shift();
      if (answer instanceof Error) throw answer;
      return answer;
    },
    cancel: async () => void (isOpen = false),
  };
  const workflow = {
    async *list() {
      const typedSearchAttributes = new Map();
      if (isOpen)
        yield {
          workflowId: 'g',
          type: JOB_GROUP_WORKFLOW,
          status: { name },
          typedSearchAttributes,
        };
    },
    getHandle: () => group,
  };
  const schedule = { getHandle: () => ({ delete: async () => undefined }) };
  const client = { workflow, schedule } as unknown as Client;
  const call = async (run: (client: Client) => Promise<unknown>): Promise<unknown> =>
    await run(client);
  const session = {
    settings: { taskQueue: 'holdfast' },
    call,
    attempt: call,
    errorSubject: () => ({ server: 'temporal', namespace: 'default' }),
  } as unknown as Session;
  let stdout = '';
  const output = new Output(
    {
      stdout: { write: (text: string) => (stdout += text) },
      stderr: { write: () => undefined },
      env: {},
      interactive: false,
    },
    'json',
  );
  await decommission(session, output, { yes: true, checkMs: 10 });
  expect(JSON.parse(stdout)).toMatchObject({ requested: ['g'] });
  expect(answers).toEqual([]);
});
