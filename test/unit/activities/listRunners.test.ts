import { expect, test } from '@jest/globals';
import { defaultDataConverter } from '@temporalio/common';
import type { Client } from '@temporalio/client';
import { temporal } from '@temporalio/proto';
import { MockActivityEnvironment } from '@temporalio/testing';
import { listRunners } from '../../../activities/runnerSet/listRunners.ts';
import type { ListedRunner } from '../../../core/activities/index.ts';

interface Request {
  readonly pageSize: number;
  readonly nextPageToken: Uint8Array;
}

const PAGES = [['runner-linux-a', 'runner-linux-b'], ['runner-linux-c']];

/** Visibility with two pages. Its token is the number of the page. */
function visibility(requests: Request[]): Client {
  const listWorkflowExecutions = async (request: Request): Promise<unknown> => {
    requests.push(request);
    const page = Number(Buffer.from(request.nextPageToken).toString() || 0);
    return {
      executions: PAGES[page]?.map((workflowId) =>
        temporal.api.workflow.v1.WorkflowExecutionInfo.fromObject({
          execution: { workflowId, runId: 'r' },
          type: { name: 'runner' },
          status: 1,
          startTime: { seconds: 1, nanos: 0 },
          historyLength: 1,
        }),
      ),
      nextPageToken: page === 0 ? Buffer.from('1') : Buffer.alloc(0),
    };
  };
  return {
    withAbortSignal: async (_signal: AbortSignal, run: () => unknown) => await run(),
    options: { namespace: 'default', loadedDataConverter: defaultDataConverter },
    workflowService: { listWorkflowExecutions },
  } as unknown as Client;
}

async function pageOf(
  client: Client,
  page?: string,
): Promise<{ runners: ListedRunner[]; next?: string }> {
  const environment = new MockActivityEnvironment({ taskQueue: 'holdfast' }, { client });
  return (await environment.run(async () =>
    listRunners({ set: 'linux', ...(page === undefined ? {} : { page }) }),
  )) as { runners: ListedRunner[]; next?: string };
}

test('a page names the next one, and the last names none: Temporal takes 2 MiB at a time', async () => {
  const requests: Request[] = [];
  const client = visibility(requests);
  const first = await pageOf(client);
  const last = await pageOf(client, first.next);
  expect([first, last].map(({ runners }) => runners.map(({ workflowId }) => workflowId))).toEqual(
    PAGES,
  );
  expect(last.next).toBeUndefined();
  expect(requests.map(({ pageSize }) => pageSize)).toEqual([1_000, 1_000]);
});
