import { expect, test } from '@jest/globals';
import { defaultDataConverter, defaultPayloadConverter } from '@temporalio/common';
import type { Client } from '@temporalio/client';
import { temporal } from '@temporalio/proto';
import { MockActivityEnvironment } from '@temporalio/testing';
import { listRunners } from '../../../activities/runnerSet/listRunners.ts';
import type { RunnerList } from '../../../core/activities/index.ts';
import { comparableText, type ComparableRunner } from '../../../core/domain/knownRunner.ts';

interface Request {
  readonly pageSize: number;
  readonly nextPageToken: Uint8Array;
}

type Runner = readonly [suffix: string, phase?: string, runnerName?: string];

const attribute = (value: string): object => {
  const { data, metadata } = defaultPayloadConverter.toPayload(value) ?? {};
  return { data, metadata: { ...metadata, type: Buffer.from('Keyword') } };
};

/** Visibility with pages. Its token is the number of the page. */
function visibility(pages: readonly (readonly Runner[])[], requests: Request[] = []): Client {
  const listWorkflowExecutions = async (request: Request): Promise<unknown> => {
    requests.push(request);
    const page = Number(Buffer.from(request.nextPageToken).toString() || 0);
    return {
      executions: pages[page]?.map(
        ([suffix, phase = 'Idle', name = `linux-${suffix}-0a1b2c3d4e`]) =>
          temporal.api.workflow.v1.WorkflowExecutionInfo.fromObject({
            execution: { workflowId: `runner-linux-${suffix}`, runId: 'r' },
            type: { name: 'runner' },
            status: 1,
            startTime: { seconds: 1, nanos: 0 },
            historyLength: 1,
            searchAttributes: {
              indexedFields: { RunnerPhase: attribute(phase), RunnerName: attribute(name) },
            },
          }),
      ),
      nextPageToken: page === pages.length - 1 ? Buffer.alloc(0) : Buffer.from(String(page + 1)),
    };
  };
  return {
    withAbortSignal: async (_signal: AbortSignal, run: () => unknown) => await run(),
    options: { namespace: 'default', loadedDataConverter: defaultDataConverter },
    workflowService: { listWorkflowExecutions },
  } as unknown as Client;
}

async function partOf(
  client: Client,
  known: readonly ComparableRunner[] = [],
  page?: string,
): Promise<RunnerList> {
  const environment = new MockActivityEnvironment({ taskQueue: 'holdfast' }, { client });
  return (await environment.run(async () =>
    listRunners({
      set: 'linux',
      known: known.map((runner) => comparableText('linux', runner)),
      ...(page === undefined ? {} : { page }),
    }),
  )) as RunnerList;
}

const suffix = (index: number): string => index.toString(36).padStart(10, '0');
const page = (from: number, count: number): Runner[] =>
  Array.from({ length: count }, (_none, index) => [suffix(from + index)]);
const known = (
  [of, , runnerName = `linux-${of}-0a1b2c3d4e`]: Runner,
  state: ComparableRunner['state'] = 'idle',
): ComparableRunner => ({ workflowId: `runner-linux-${of}`, state, runnerName });
const idsOf = ({ runners }: RunnerList): string[] => runners.map(({ workflowId }) => workflowId);

test('a page of 1,000 changed runners names the next one, because Temporal accepts 2 MiB at a time', async () => {
  const requests: Request[] = [];
  const client = visibility([page(0, 1_000), page(1_000, 1_000), page(2_000, 1)], requests);
  const first = await partOf(client);
  const second = await partOf(client, [], first.next);
  const last = await partOf(client, [], second.next);
  expect([first, second, last].map(({ runners }) => runners.length)).toEqual([1_000, 1_000, 1]);
  expect(last.next).toBeUndefined();
  expect(requests.map(({ pageSize }) => pageSize)).toEqual([1_000, 1_000, 1_000]);
});

test('a result has the changed runners of several pages, and the missing ones', async () => {
  const [one, other, gone, fresh]: Runner[] = [[suffix(0)], [suffix(1)], [suffix(2)], [suffix(3)]];
  const part = await partOf(visibility([[one as Runner], [other as Runner, fresh as Runner]]), [
    known(one as Runner),
    known(gone as Runner),
    known(other as Runner),
  ]);
  expect(idsOf(part)).toEqual([`runner-linux-${suffix(3)}`]);
  expect(part).toMatchObject({ unconfirmed: [1] });
  expect(part.next).toBeUndefined();
});

test.each<[what: string, listed: Runner, known: ComparableRunner, changed: boolean]>([
  [
    'its phase is that of its state',
    ['0'.repeat(10), 'Busy'],
    known(['0'.repeat(10)], 'busy'),
    false,
  ],
  ['it leaves', ['0'.repeat(10), 'TearingDown'], known(['0'.repeat(10)], 'draining'), false],
  [
    'it is not online yet',
    ['0'.repeat(10), 'Requested'],
    known(['0'.repeat(10)], 'starting'),
    false,
  ],
  ['it is idle, and busy in the set', ['0'.repeat(10)], known(['0'.repeat(10)], 'busy'), true],
  ['it does not drain', ['0'.repeat(10)], known(['0'.repeat(10)], 'draining'), true],
  [
    'it has replaced its runner',
    ['0'.repeat(10), 'Idle', `linux-${'0'.repeat(10)}-0a1b2c3d4e-r2`],
    known(['0'.repeat(10)]),
    true,
  ],
])('a runner is listed if it has changed: %s', async (_what, listed, runner, changed) => {
  const part = await partOf(visibility([[listed]]), [runner]);
  expect(idsOf(part)).toEqual(changed ? [runner.workflowId] : []);
  expect(part.unconfirmed).toEqual(changed ? [0] : []);
});
