import { describe, expect, test } from '@jest/globals';
import { locationLabel, podName, runnerHash } from '../../activities/compute/naming.ts';
import { parseRunnerNameHash, runnerName } from '../../core/domain/runnerName.ts';

const identity = { workflowId: 'runner-blue-7', firstRunId: '0197-aa', attempt: 1 };
const DNS_1123_LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

describe('podName', () => {
  test.each([
    ['plain', 'runner-blue-7', /^runner-blue-7-[0-9a-f]{10}$/],
    ['upper case, slash, underscore', 'Runner/Blue_7', /^runner-blue-7-[0-9a-f]{10}$/],
    ['leading and trailing punctuation', '--a.b--', /^a-b-[0-9a-f]{10}$/],
    ['longer than a label', 'x'.repeat(200), /^x{52}-[0-9a-f]{10}$/],
    ['cut in the middle of a separator', `${'x'.repeat(51)}-y`, /^x{51}-[0-9a-f]{10}$/],
    ['nothing readable', '漢字', /^runner-[0-9a-f]{10}$/],
  ])('%s', (_, workflowId, expected) => {
    const name = podName({ ...identity, workflowId });
    expect(name).toMatch(expected);
    expect(name).toMatch(DNS_1123_LABEL);
  });

  test('is equal for equal identities, and differs if any part differs', () => {
    expect(podName({ ...identity })).toBe(podName(identity));
    const names = [
      identity,
      { ...identity, attempt: 2 },
      { ...identity, firstRunId: '0197-ab' },
      { ...identity, workflowId: 'runner-blue.7' },
    ].map(podName);
    expect(new Set(names).size).toBe(4);
  });
});

test('placeLabel: differs for each location', () => {
  expect(locationLabel('kubernetes/1/main/ci')).toMatch(/^holdfast-[0-9a-f]{10}$/);
  expect(
    new Set(
      [
        'kubernetes/1/main/ci',
        'kubernetes/2/main/ci',
        'kubernetes/1/other/ci',
        'kubernetes/1/main/other',
      ].map(locationLabel),
    ).size,
  ).toBe(4);
});

describe('runnerName', () => {
  const hash = runnerHash(identity);

  test('contains its hash', () => {
    expect(
      [
        runnerName('blue-7', hash, 1),
        runnerName('x'.repeat(100), hash, 12),
        'blue-7',
        `${hash}-x`,
        `blue${hash}`,
      ].map(parseRunnerNameHash),
    ).toEqual([hash, hash, undefined, undefined, undefined]);
  });

  test('first attempt, replacement', () => {
    const first = runnerName('blue-7', hash, 1);
    expect(first).toMatch(/^blue-7-[0-9a-f]{10}$/);
    expect(runnerName('blue-7', hash, 2)).toBe(`${first}-r2`);
    expect(runnerName('blue-7', hash, 12)).toBe(`${first}-r12`);
  });

  test('has at most 64 characters and keeps the suffix', () => {
    expect(runnerName('x'.repeat(100), hash, 1)).toMatch(/^x{53}-[0-9a-f]{10}$/);
    expect(runnerName('x'.repeat(100), hash, 3)).toMatch(/^x{50}-[0-9a-f]{10}-r3$/);
  });

  test('another run of the same workflow id gets another name', () => {
    expect(hash).not.toBe(runnerHash({ ...identity, firstRunId: 'other' }));
  });
});
