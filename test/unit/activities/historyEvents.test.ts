/** Histories whose pages are larger than a message: gRPC between the services of Temporal carries 4 MiB. */
import { expect, test } from '@jest/globals';
import { ServiceError as TemporalServiceError, type Client } from '@temporalio/client';
import { historyEvents } from '../../../activities/shared/historyEvents.ts';

interface Request {
  readonly maximumPageSize: number;
  readonly nextPageToken?: Uint8Array;
}

const RESOURCE_EXHAUSTED = 8;
const EVENTS = 20;

function grpcError(details: string): Error {
  const cause = Object.assign(new Error(details), {
    code: RESOURCE_EXHAUSTED,
    details,
    metadata: {},
  });
  return new TemporalServiceError('failed', { cause });
}

/** A server whose pages may have this many events. */
function serverWith(most: number, requests: Request[], details: string): Client {
  const getWorkflowExecutionHistory = async (request: Request): Promise<object> => {
    requests.push(request);
    const { maximumPageSize, nextPageToken } = request;
    const from = Number(Buffer.from(nextPageToken ?? []).toString() || 0);
    const to = Math.min(from + maximumPageSize, EVENTS);
    if (to - from > most) throw grpcError(details);
    return {
      history: {
        events: Array.from({ length: to - from }, (_none, index) => ({ eventId: from + index })),
      },
      nextPageToken: Buffer.from(to < EVENTS ? String(to) : ''),
    };
  };
  return {
    options: { namespace: 'default' },
    workflowService: { getWorkflowExecutionHistory },
  } as unknown as Client;
}

const TOO_LARGE = 'grpc: received message larger than max (5000000 vs. 4194304)';
const RUN = { workflowId: 'w', runId: 'r' };

test.each([64, 16, 3, 1])('all events are read, in order, in pages of at most %s', async (most) => {
  const requests: Request[] = [];
  const ids: unknown[] = [];
  for await (const { eventId } of historyEvents(serverWith(most, requests, TOO_LARGE), RUN))
    ids.push(eventId);
  expect(ids).toEqual(Array.from({ length: EVENTS }, (_none, index) => index));
});

test('later pages are not requested if the caller has seen enough', async () => {
  const requests: Request[] = [];
  const events = historyEvents(serverWith(4, requests, TOO_LARGE), RUN);
  expect((await events.next()).value).toMatchObject({ eventId: 0 });
  await events.return(undefined);
  expect(requests.map(({ maximumPageSize }) => maximumPageSize)).toEqual([64, 16, 4]);
});

test.each([
  ['a single event above the limit', 0, TOO_LARGE],
  ['a rate limit', 4, 'namespace rate limit exceeded'],
])('%s is an error', async (_what, most, details) => {
  const events = historyEvents(serverWith(most, [], details), RUN);
  await expect(events.next()).rejects.toMatchObject({ cause: { details } });
});
