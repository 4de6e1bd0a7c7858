import { expect, test } from '@jest/globals';
import { ServiceError } from '@temporalio/client';
import { isConnectionLoss, toCliError } from '../../cli/shared/temporalErrors.ts';

const ABOUT = { server: '127.0.0.1:7233 (from --address)', namespace: 'default' };

/** An error as the client throws it. */
function failed(code: number, details: string): ServiceError {
  return new ServiceError('the call failed', {
    cause: Object.assign(new Error(`${code}: ${details}`), { code, details, metadata: {} }),
  });
}

test.each<[what: string, code: number, details: string, lost: boolean]>([
  ['the server is unreachable', 14, 'connect ECONNREFUSED 127.0.0.1:7233', true],
  ['the deadline, detected by the client', 4, 'Deadline exceeded', true],
  ['the deadline, detected by the server first', 1, 'Call cancelled', true],
  ['a rejection', 3, 'bad query', false],
  ['a credential', 7, 'Request unauthorized.', false],
])('an error without a response is not conclusive: %s', (_what, code, details, lost) => {
  const error = failed(code, details);
  expect([isConnectionLoss(error), toCliError(error, ABOUT).code === 'unreachable']).toEqual([
    lost,
    lost,
  ]);
});
