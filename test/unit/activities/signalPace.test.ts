import { expect, test } from '@jest/globals';
import type { Client } from '@temporalio/client';
import { paceFor, SignalPaces, type SignalPace } from '../../../activities/runnerSet/signalPace.ts';

test.each<[historyLength: number, silentMs: number, pace: SignalPace]>([
  [10, 0, 'normal'],
  [1_500, 4_999, 'normal'],
  [10, 5_000, 'slow'],
  [7_999, 60_000, 'slow'],
  [8_000, 0, 'refuse'],
  [9_999, 60_000, 'refuse'],
])('%d events, silent for %d ms: %s', (historyLength, silentMs, pace) => {
  expect(paceFor({ historyLength, silentMs })).toBe(pace);
});

/** A client whose sets are in the given state. It counts the checks. */
function clientOf(run: { historyLength: number; sinceMs?: number } | Error): {
  client: Client;
  checks: string[];
} {
  const checks: string[] = [];
  const describe = (workflowId: string): unknown => {
    checks.push(workflowId);
    if (run instanceof Error) throw run;
    const { historyLength, sinceMs } = run;
    const task =
      sinceMs === undefined
        ? null
        : { originalScheduledTime: { seconds: Math.floor((Date.now() - sinceMs) / 1_000) } };
    return { historyLength, raw: { pendingWorkflowTask: task } };
  };
  const client = {
    workflow: {
      getHandle: (workflowId: string) => ({ describe: async () => describe(workflowId) }),
    },
  };
  return { client: client as unknown as Client, checks };
}

async function pacesOf(client: Client, signals: number): Promise<SignalPace[]> {
  const paces = new SignalPaces();
  const seen: SignalPace[] = [];
  for (let signal = 0; signal < signals; signal++)
    seen.push(paces.isCheckDue('set-a') ? await paces.check(client, 'set-a') : 'normal');
  return seen;
}

test('a set that responds is checked with every 20th signal', async () => {
  const { client, checks } = clientOf({ historyLength: 100 });
  expect(new Set(await pacesOf(client, 60))).toEqual(new Set(['normal']));
  expect(checks).toHaveLength(3);
});

test.each<[SignalPace, { historyLength: number; sinceMs?: number }]>([
  ['slow', { historyLength: 100, sinceMs: 10_000 }],
  ['refuse', { historyLength: 8_500, sinceMs: 10_000 }],
])('%s: each signal is sent separately from the first check on', async (pace, run) => {
  const { client, checks } = clientOf(run);
  const seen = await pacesOf(client, 25);
  expect([seen.slice(0, 19), seen.slice(19)]).toEqual([
    Array.from({ length: 19 }, () => 'normal'),
    Array.from({ length: 6 }, () => pace),
  ]);
  expect(checks).toHaveLength(6);
});

test('a failed check changes nothing', async () => {
  const { client } = clientOf(new Error('unavailable'));
  expect(new Set(await pacesOf(client, 40))).toEqual(new Set(['normal']));
});
