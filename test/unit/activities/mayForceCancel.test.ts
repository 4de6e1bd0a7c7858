/** When the workflow run of a lost job may be force-cancelled. */
import { beforeEach, expect, test } from '@jest/globals';
import { MockActivityEnvironment } from '@temporalio/testing';
import type { ActivityPorts } from '../../../activities/ports/activityPorts.ts';
import { mayForceCancel } from '../../../activities/rerun/mayForceCancel.ts';
import type { AwaitRerunInput } from '../../../core/activities/index.ts';
import { FakeCiServer } from '../../support/fakeCiServer.ts';
import { FakeReruns } from '../../support/fakeReruns.ts';

const NAME = 'linux-0123456789';
let ci: FakeCiServer;
let reruns: FakeReruns;

beforeEach(async () => {
  ci = new FakeCiServer();
  reruns = new FakeReruns();
  await ci.register({
    scope: { kind: 'organization', name: 'acme' },
    name: NAME,
    labels: [],
    group: 'default',
    ephemeral: true,
    mode: 'jit',
  });
  reruns.begin('1', NAME);
  reruns.evidence.set('1', 'none');
});

const lostJob = (more: Partial<AwaitRerunInput> = {}): AwaitRerunInput => ({
  scope: { kind: 'organization', name: 'acme' },
  credential: 'default',
  runnerName: NAME,
  job: { id: '1', repository: 'acme/web' },
  perRun: 1,
  recorded: false,
  lostAtMs: Date.now() - 61_000,
  forceCancelAfterMs: 60_000,
  ...more,
});

async function isPermitted(input: AwaitRerunInput = lostJob()): Promise<boolean> {
  const ports = { ciServers: ci } as unknown as ActivityPorts;
  return await new MockActivityEnvironment().run(
    async () => await mayForceCancel(ports, reruns, input, reruns.jobs.get('1')),
  );
}

test('only a job in progress on an offline runner', async () => {
  expect(await isPermitted()).toBe(true);
});

test.each<[what: string, more: Partial<AwaitRerunInput>]>([
  ['before its time', { lostAtMs: Date.now() - 30_000 }],
  ['of another runner', { runnerName: 'linux-9999999999' }],
  ['in an attempt that may not be rerun', { perRun: 0 }],
])('not %s', async (_what, more) => {
  expect(await isPermitted(lostJob(more))).toBe(false);
});

test('not without the setting', async () => {
  const { forceCancelAfterMs: _never, ...unset } = lostJob();
  expect(await isPermitted(unset)).toBe(false);
});

test.each<[what: string, change: () => void]>([
  ['with another job of its run', () => reruns.shared.add('1')],
  ['that someone has cancelled', () => reruns.evidence.set('1', 'cancelled')],
  ['whose runner was shut down, so that it ends soon', () => reruns.evidence.set('1', 'shutdown')],
  ['whose runner is online', () => void ci.connect(NAME)],
  ['whose runner is not listed', () => ci.forget(NAME)],
  ['that has ended', () => reruns.end('1', 'failure')],
  ['that is unknown', () => void reruns.jobs.delete('1')],
])('not for a job %s', async (_what, change) => {
  change();
  expect(await isPermitted()).toBe(false);
});
