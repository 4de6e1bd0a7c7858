/** The end of a service process after a signal. */
import { afterEach, expect, jest, test } from '@jest/globals';
import type { StopSignal } from '../../../worker/process/stopSignal.ts';
import { runService } from '../../../worker/process/serviceProcess.ts';

const written: string[] = [];

/** Runs a service that fails; `fail` gets its stop signal. Its log goes to `written`. */
async function run(fail: (stop: StopSignal) => unknown): Promise<number> {
  return await runService(
    {
      name: 'test',
      load: () => ({ log: { level: 'silent', format: 'json' as const }, warnings: [] }),
      serve: async (_config, logger, stop) => {
        jest.spyOn(logger, 'warn').mockImplementation((fields: unknown, text?: unknown) => {
          written.push(`${String(text)}: ${String((fields as { err: unknown }).err)}`);
        });
        throw await Promise.resolve(fail(stop));
      },
    },
    { env: {} },
  );
}
afterEach(() => void written.splice(0));

test('an error after SIGTERM is logged, and the status is that of the signal', async () => {
  const status = await run(() => {
    process.emit('SIGTERM', 'SIGTERM');
    return new Error('failed to flush events');
  });
  expect(status).toBe(143);
  expect(written).toEqual(['stopped with an error: Error: failed to flush events']);
});

test.each<[of: string, error: (reason: unknown) => unknown]>([
  ['the SDK', (reason) => reason],
  ['Node.js', (cause) => new Error('aborted', { cause })],
])('a wait of %s that the signal has ended is no error', async (_of, error) => {
  const status = await run((stop) => {
    process.emit('SIGINT', 'SIGINT');
    return error(stop.signal.reason);
  });
  expect(status).toBe(130);
  expect(written).toEqual([]);
});

test('an error without a signal is thrown', async () => {
  await expect(run(() => new Error('failed'))).rejects.toThrow('failed');
});
