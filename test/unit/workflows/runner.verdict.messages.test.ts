import { expect, test } from '@jest/globals';
import type { PodView } from '../../../core/domain/pod.ts';
import type { EndFacts } from '../../../workflows/runner/endFacts.ts';
import { decideVerdict } from '../../../workflows/runner/verdict.ts';

const ISO = '2026-01-01T00:00:00.000Z';
const ended: PodView = {
  name: 'p',
  uid: 'u',
  workflowId: 'w',
  scheduled: true,
  createdAt: ISO,
  startedAt: ISO,
  ended: true,
  deleted: false,
  terminating: false,
};
const exited = (code: number, message?: string): PodView => ({
  ...ended,
  exit: { code, oomKilled: false, ...(message === undefined ? {} : { message }) },
});
const evicted: PodView = {
  ...exited(143),
  terminating: true,
  disruptionReason: 'EvictionByEvictionAPI',
};
const facts: EndFacts = {
  stoppedByHoldfast: false,
  ephemeral: true,
  kind: 'github',
  checkpoints: false,
  started: true,
  wasOnline: true,
  wasRegistered: true,
  hadJob: false,
  busyAtEnd: false,
  jobSucceeded: false,
  jobInterrupted: false,
  removal: 'removed',
  onEviction: 'replace',
  neverStartedInARow: 0,
  shortLivedInARow: 1,
};
const cancel = (reason: string) => ({ cancel: { mode: 'stop', by: 'cancelled', reason } }) as const;

test.each<[string, Partial<EndFacts>]>([
  ['The runner exited with code 3.', { pod: exited(3) }],
  ['The runner exited with code 3. disk full', { pod: exited(3, 'disk full') }],
  [
    'The runner exited with code 3. Its artifacts were not stored: too much',
    {
      pod: {
        ...ended,
        exit: { code: 3, oomKilled: false, uploadFailure: { by: 'step', why: 'too much' } },
      },
    },
  ],
  [
    'The runner exited with code 0, but the CI server still has its job running.',
    {
      pod: { ...ended, exit: { code: 0, oomKilled: false, record: { job: 'none' } } },
      removal: 'busy',
    },
  ],
  [
    'The runner exited with code 0 before it was ever online.',
    { pod: exited(0), wasOnline: false, wasRegistered: false },
  ],
  [
    'The registration was removed by someone else, and the runner ended.',
    { pod: { ...exited(0), online: false }, removal: 'absent' },
  ],
  ['The static runner exited with code 0 without a request.', { pod: exited(0), ephemeral: false }],
  ['The runner exited with code 0 without having run a job.', { pod: exited(0) }],
  ['The runner was lost while idle (evicted): it is replaced.', { pod: evicted }],
  [
    'The runner was lost while it ran a job (evicted): it is replaced.',
    { pod: evicted, hadJob: true, busyAtEnd: true, removal: 'busy' },
  ],
  [
    'The runner hangs (nobody hears of it): it is replaced.',
    {
      pod: evicted,
      suspected: { cause: 'agent_lost', why: 'The runner hangs (nobody hears of it)' },
    },
  ],
  ['The runner was ended (cancelled, stop).', { pod: evicted, ...cancel('') }],
  ['The runner was ended (cancelled, stop): too late.', { pod: evicted, ...cancel('too late') }],
])('the message of a verdict: %s', (message, more) =>
  expect(decideVerdict({ ...facts, ...more }).message).toBe(message),
);
