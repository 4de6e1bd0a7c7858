import { describe, expect, test } from '@jest/globals';
import { templateHash } from '../../../activities/runnerSet/admitSet.ts';
import { SET_DELAYS, SET_INTERVALS } from '../../../core/contract/index.ts';
import { parseRunnerSetInput } from '../../../core/input/runnerSet.ts';
import { needsVolumeSlots, withSlotClaims } from '../../../core/domain/volumeSlots.ts';

const parse = (input: unknown) =>
  parseRunnerSetInput(input, {
    hash: templateHash,
    checkSchedule: ({ cron }) => (cron === 'never' ? 'is wrong' : undefined),
  });
const template = { organization: 'acme', labels: ['linux'] };
const set = { name: 'linux', replicas: 1, template };

describe('a set’s declaration', () => {
  // zod checks the length of every value with a length property.
  test('an object in place of a string is rejected, even if its length is not a number', () => {
    const errors = [{ code: 'invalid', field: 'input' }];
    expect(
      parse({ ...set, name: { toString: 1, length: { toString: 1, length: -1 } } }),
    ).toMatchObject({
      ok: false,
      errors,
    });
  });

  test('all errors of the fields, of their combinations and of the template are reported at once', () => {
    const parsed = parse({
      ...set,
      max: 3,
      priority: 'urgent',
      schedules: [{ cron: 'never', duration: '1h', replicas: 1 }],
      template: { organization: 'acme', labels: [], runnerGroup: 'x', runnerGroupId: '7' },
    });
    expect(parsed.ok ? [] : parsed.errors.map(({ field }) => field)).toEqual([
      'priority',
      'max',
      'schedules.0.cron',
      'template.labels',
      'template.runnerGroup, runnerGroupId',
    ]);
  });

  test('errors that may follow from another error are not reported', () => {
    const parsed = parse({ ...set, max: 'many', template: { repository: 7, labels: ['a'] } });
    expect(parsed.ok ? [] : parsed.errors.map(({ field }) => field)).toEqual([
      'max',
      'template.repository',
    ]);
  });

  test('the defaults', () => {
    expect(SET_DELAYS).toEqual({
      scaleDownDelay: '10m',
      minReady: '10s',
      recreationGuard: '10m',
      queueCheck: '5m',
    });
    expect(SET_INTERVALS).toEqual({
      relist: '5m',
      initialRetry: '15s',
      maxRetry: '10m',
      guardCheck: '30s',
      reroute: '15s',
    });
    expect(
      parse({ ...set, schedules: [{ cron: '0 8 * * *', duration: '1h', max: 4 }] }),
    ).toMatchObject({
      ok: true,
      spec: {
        maxSurge: 1,
        schedules: [{ timeZone: 'UTC', bounds: { kind: 'elastic', minIdle: 0, max: 4 } }],
        relistMs: 300_000,
        initialRetryMs: 15_000,
        maxRetryMs: 600_000,
        guardCheckMs: 30_000,
      },
    });
  });

  test('all fields, with durations in ms', () => {
    const limits = {
      perRepository: 20,
      repositories: [{ repositories: ['acme/web', 'acme/api-*'], max: 30 }],
      maxRunnerHours: 0.5,
    };
    const parsed = parse({
      name: 'linux',
      template: { ...template, runnerGroupId: '7' },
      limits,
      priority: 'high',
      minIdle: 1,
      max: 9,
      replaceAhead: 2,
      scaleDownDelay: '0s',
      queueCheck: '1m',
      rollout: { maxSurge: 3 },
      schedules: [{ cron: '0 8 * * *', duration: '1h', replicas: 4 }],
      paused: true,
    });
    expect(parsed).toMatchObject({
      ok: true,
      spec: {
        scope: { kind: 'organization', name: 'acme' },
        bounds: { kind: 'elastic', minIdle: 1, max: 9, replaceAhead: 2 },
        scaleDownDelayMs: 0,
        recreationGuardMs: 600_000,
        queueCheckMs: 60_000,
        maxSurge: 3,
        ephemeral: true,
        slots: false,
        labels: ['linux'],
        group: { id: '7' },
        limits,
        priority: 'high',
        schedules: [
          {
            cron: '0 8 * * *',
            timeZone: 'UTC',
            durationMs: 3_600_000,
            bounds: { kind: 'fixed', replicas: 4, replaceAhead: 2 },
          },
        ],
      },
    });
  });

  test.each<[string, object, string[]]>([
    ['an unknown field', { ...set, replica: 1 }, ['unknown_field replica']],
    [
      'an unknown field of the template',
      { ...set, template: { ...template, imagee: 'x' } },
      ['unknown_field template.imagee'],
    ],
    ['no size', { name: 'linux', template }, ['required replicas']],
    ['no upper bound', { name: 'linux', template, minIdle: 1 }, ['required max']],
    ['two sizes', { ...set, max: 3 }, ['conflict max']],
    ['upside down', { name: 'linux', template, minIdle: 4, max: 3 }, ['out_of_range minIdle']],
    ['too many', { ...set, replicas: 5_001 }, ['out_of_range replicas']],
    [
      'the set’s own fields in the template',
      { ...set, template: { ...template, name: 'x', set: 'y' } },
      ['reserved template.name', 'reserved template.set'],
    ],
    [
      'a schedule',
      { ...set, schedules: [{ cron: 'never', duration: '1h', replicas: 1, max: 2 }] },
      ['conflict schedules.0.max', 'invalid schedules.0.cron'],
    ],
    [
      'a schedule with replicas and observed capacity',
      {
        name: 'linux',
        template,
        max: 3,
        capacity: 'observed',
        schedules: [
          { cron: '0 8 * * *', duration: '1h', max: 2 },
          { cron: '0 9 * * *', duration: '1h', replicas: 2 },
        ],
      },
      ['conflict schedules.1.replicas'],
    ],
    [
      'replace-ahead beyond the maximum of a set',
      { ...set, replicas: 4_999, replaceAhead: 2 },
      ['out_of_range replaceAhead'],
    ],
    [
      'replace-ahead of static runners',
      { ...set, replaceAhead: 1, template: { ...template, ephemeral: false } },
      ['not_applicable replaceAhead'],
    ],
    [
      'replace-ahead together with slots',
      {
        ...set,
        replaceAhead: 1,
        template: {
          ...template,
          volumeClaims: [{ name: 'cache', mountPath: '/cache', claim: 'cache', storage: '1Gi' }],
        },
      },
      ['conflict replaceAhead'],
    ],
    ['a negative replace-ahead', { ...set, replaceAhead: -1 }, ['out_of_range replaceAhead']],
    [
      'a limit below one',
      { ...set, limits: { perRepository: 0, maxRunnerHours: 0 } },
      ['out_of_range limits.perRepository', 'out_of_range limits.maxRunnerHours'],
    ],
    [
      'invalid names of repositories',
      { ...set, limits: { repositories: [{ repositories: ['acme', 'acme/[a'], max: 1 }] } },
      [
        'invalid limits.repositories.0.repositories.0',
        'invalid limits.repositories.0.repositories.1',
      ],
    ],
    ['another priority', { ...set, priority: 'urgent' }, ['invalid priority']],
    ['durations', { ...set, scaleDownDelay: 'soon' }, ['invalid scaleDownDelay']],
    [
      'a surge of zero, which would block every rollout,',
      { ...set, rollout: { maxSurge: 0 } },
      ['out_of_range rollout.maxSurge'],
    ],
    ['a long name', { ...set, name: 'x'.repeat(37) }, ['out_of_range name']],
    ['a name that is not a valid label value', { ...set, name: '-x' }, ['invalid name']],
    ['no scope', { ...set, template: {} }, ['required template.organization']],
  ])('%s is rejected', (_what, input, errors) => {
    const parsed = parse(input);
    expect(parsed.ok ? [] : parsed.errors.map(({ code, field }) => `${code} ${field}`)).toEqual(
      errors,
    );
  });

  test('a template’s hash depends on its content, not on its notation', () => {
    expect(templateHash({ organization: 'acme', labels: ['a'] })).toBe(
      templateHash({ labels: ['a'], organization: 'acme', image: undefined }),
    );
    expect(templateHash({ labels: ['a', 'b'] })).not.toBe(templateHash({ labels: ['b', 'a'] }));
    expect(templateHash({})).toMatch(/^[0-9a-f]{10}$/);
  });
});

describe('slots', () => {
  const claim = { name: 'cache', mountPath: '/cache', claim: 'cache', storage: '10Gi' };
  test.each([
    ['each runner has its own claim', claim, 'cache-2'],
    [
      'an existing claim is shared',
      { name: 'cache', mountPath: '/cache', claim: 'cache' },
      'cache',
    ],
    [
      'a ReadWriteMany claim is shared',
      { ...claim, accessModes: ['ReadWriteMany' as const] },
      'cache',
    ],
    [
      'a claim that is deleted with its runner needs no slot',
      { name: 'cache', mountPath: '/cache', storage: '10Gi' },
      undefined,
    ],
  ])('%s', (_what, one, name) => {
    const withClaim = { ...template, volumeClaims: [one] };
    expect(needsVolumeSlots(withClaim)).toBe(name === 'cache-2');
    expect(withSlotClaims(withClaim, 'linux', 2)).toEqual({
      ...template,
      set: 'linux',
      volumeClaims: [{ ...one, ...(name === undefined ? {} : { claim: name }) }],
    });
  });
});

test('a list that contains itself, which YAML permits, is an error of its field', () => {
  const labels: unknown[] = ['linux'];
  labels.push(labels);
  const parsed = parseRunnerSetInput(
    { name: 'linux', replicas: 3, template: { organization: 'acme', labels } },
    { hash: () => '', checkSchedule: () => undefined },
  );
  expect(parsed).toMatchObject({ ok: false, errors: [{ field: 'template.labels.1' }] });
});
