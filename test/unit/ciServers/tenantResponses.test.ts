import { expect, test } from '@jest/globals';
import {
  classifyTenantResponse,
  messageAnswer,
  sessionAnswer,
} from '../../../activities/ciServers/github/tenantResponses.ts';

const STATISTICS = { totalAssignedJobs: 3, totalRunningJobs: 1 };
const message = (body: string): unknown => ({
  messageId: 7,
  messageType: 'RunnerScaleSetJobMessages',
  body,
  statistics: STATISTICS,
});

test.each([
  [409, 'GitHub.Actions.Runtime.WebApi.RunnerScaleSetSessionConflictException', 'conflict'],
  [409, 'GitHub.DistributedTask.WebApi.TaskAgentSessionConflictException', 'conflict'],
  [409, 'GitHub.DistributedTask.WebApi.TaskAgentExistsException', 'name_taken'],
  [409, 'GitHub.Actions.Runtime.WebApi.RunnerScaleSetExistsException', 'name_taken'],
  [400, 'GitHub.DistributedTask.WebApi.JobStillRunningException', 'busy'],
  [404, 'GitHub.DistributedTask.WebApi.TaskAgentNotFoundException', 'not_found'],
  [404, 'GitHub.Actions.Runtime.WebApi.RunnerScaleSetNotFoundException', 'not_found'],
  [401, 'VssUnauthorizedException', 'credentials'],
  [409, 'SomethingElse', 'unavailable'],
  [400, 'ArgumentException', 'rejected'],
  // A rate limit and an outage are recognized by the status, whatever exception they name.
  [429, 'JobStillRunningException', 'rate_limited'],
  [503, 'JobStillRunningException', 'unavailable'],
])('%d with %s is %s', (status, typeName, kind) => {
  const answer = { status, headers: {}, body: { typeName, message: 'text' } };
  expect(classifyTenantResponse(answer, 0).kind).toBe(kind);
});

test('entries of unknown types are skipped; the others keep their order', () => {
  const entries = [
    { messageType: 'JobAvailable', runnerRequestId: 1 },
    { messageType: 'JobPondered', runnerRequestId: 2 },
    { runnerRequestId: 3 },
    { messageType: 'JobStarted', runnerRequestId: 4, runnerName: 'r-1' },
    { messageType: 'JobCompleted', runnerRequestId: 5, runnerName: '', result: 'canceled' },
  ];
  expect(messageAnswer.parse(message(JSON.stringify(entries)))).toMatchObject({
    id: 7,
    statistics: { assigned: 3, running: 1, idleRunners: 0 },
    events: [
      { kind: 'available', requestId: 1 },
      { kind: 'started', requestId: 4, runnerName: 'r-1' },
      { kind: 'completed', requestId: 5, result: 'canceled' },
    ],
  });
});

test('a message with statistics only has no events', () => {
  expect(messageAnswer.parse(message('')).events).toEqual([]);
});

test.each(['{', '{}', '[{"messageType":"JobStarted","runnerRequestId":1}]'])(
  'a message with the body %s is rejected as a whole, because its statistics cannot be trusted',
  (body) => {
    const read = (): unknown => messageAnswer.parse(message(body));
    expect(read).toThrow(/JSON|expected/);
  },
);

test('a session without the URL of its queue is invalid', () => {
  const session = {
    sessionId: 's',
    messageQueueUrl: '',
    messageQueueAccessToken: 't',
    statistics: STATISTICS,
  };
  expect(sessionAnswer.safeParse(session).success).toBe(false);
  expect(
    sessionAnswer.safeParse({ ...session, messageQueueUrl: 'https://host/queue' }).success,
  ).toBe(true);
});
