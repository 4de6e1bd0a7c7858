import { describe, expect, test } from '@jest/globals';
import { GITHUB_RUNNER } from '../../../core/domain/runnerKinds/gitHub.ts';
import {
  imageVersion,
  runnerVersionText,
  templateImage,
  versionDeadlineMs,
} from '../../../core/domain/runnerVersion.ts';
import { evaluateRunnerVersions } from '../../../worker/checks/runnerVersionCheck.ts';
import { parseRunnerVersion } from '../../../workflows/runnerSet/jobSignals.ts';

describe('the runner version of an image', () => {
  test.each([
    ['ghcr.io/actions/actions-runner:2.338.0', '2.338.0'],
    ['registry:5000/runner:v2.338.0', '2.338.0'],
    ['runner:2.338.0-ubuntu-24.04', '2.338.0'],
    ['runner:2.338.0@sha256:0123', '2.338.0'],
    ['runner:latest', undefined],
    ['runner', undefined],
    ['registry.2.338.0:5000/runner', undefined],
    ['runner@sha256:0123', undefined],
    ['runner:2.338', undefined],
    ['runner:1.2.3.4', undefined],
  ])('%s: %s', (image, version) => {
    expect(imageVersion(image)).toBe(version);
  });

  test('the default image has one', () => {
    expect(imageVersion(GITHUB_RUNNER.image.name)).toMatch(/^2\.\d+\.\d+$/);
  });

  test('the image is the one of the template, or that of its container "runner"', () => {
    const spec = {
      containers: [
        { name: 'side', image: 'a:1.0.0' },
        { name: 'runner', image: 'b' },
      ],
    };
    expect(templateImage({ image: 'c', pod: { spec } })).toBe('c');
    expect(templateImage({ pod: { spec } })).toBe('b');
    expect(templateImage({ pod: { spec: { containers: 'none' } } })).toBeUndefined();
    expect(templateImage({})).toBeUndefined();
  });
});

describe('the deadlines of a version', () => {
  const whole = {
    version: '2.338.0',
    jobsUntil: '2026-12-24T00:00:00.000Z',
    registrationUntil: '2026-12-31T00:00:00.000Z',
  };

  test('the earliest one counts', () => {
    expect(versionDeadlineMs(whole)).toBe(Date.parse('2026-12-24'));
    expect(versionDeadlineMs({ version: '2.338.0' })).toBeUndefined();
    expect(versionDeadlineMs(undefined)).toBeUndefined();
  });

  test('are shown with the version', () => {
    expect(runnerVersionText(whole)).toBe(
      '2.338.0, gets jobs until 2026-12-24T00:00:00.000Z, can register until 2026-12-31T00:00:00.000Z',
    );
    expect(runnerVersionText({ version: '2.338.0' })).toBe('2.338.0');
  });

  test('the doctor warns of each set whose deadline is less than a week ahead', () => {
    const day = 24 * 3_600_000;
    const statuses = [{ name: 'linux', runnerVersion: whole }, { name: 'young' }];
    const found = (now: number): string[] =>
      evaluateRunnerVersions(statuses, now).map(({ level, message }) => `${level} ${message}`);
    expect(found(Date.parse('2026-12-24') - 7 * day)).toEqual([]);
    expect(found(Date.parse('2026-12-24') - 6 * day)).toEqual([
      expect.stringMatching(/^warning set linux: .*2\.338\.0/),
    ]);
  });

  test('a signal with any value is accepted', () => {
    expect(parseRunnerVersion({ ...whole, at: 1, more: true })).toEqual({ ...whole, at: 1 });
    for (const body of [
      undefined,
      'text',
      whole,
      { ...whole, at: Number.NaN },
      { at: 1 },
      { at: 1, version: 'x'.repeat(51) },
      { ...whole, at: 1, jobsUntil: 'soon' },
    ])
      expect(parseRunnerVersion(body)).toBeUndefined();
  });
});
