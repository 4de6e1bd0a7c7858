import { describe, expect, test } from '@jest/globals';
import type { RunnerInput } from '../../../core/contract/index.ts';
import { parseRunnerInput } from '../../../core/input/runner.ts';

const COMMAND = { ciServer: 'none', command: ['work'] } as const;
const STATE = { name: 'state', mountPath: '/state', storage: '1Gi' };

function refused(input: object): string[] {
  const parsed = parseRunnerInput(input, { workflowId: 'runner-x' });
  return parsed.ok ? [] : parsed.errors.map(({ code, field }) => `${code} ${field}`);
}

describe('invalid combinations', () => {
  test.each<[object, string[]]>([
    [{ ...COMMAND }, []],
    [{ ...COMMAND, onTerm: 'checkpoint', onEviction: 'resume', volumeClaims: [STATE] }, []],
    [{ ...COMMAND, onEviction: 'resume', volumeClaims: [STATE], supervisor: 'none' }, []],
    [{ ciServer: 'none' }, ['required command']],
    [{ ...COMMAND, ephemeral: false }, ['conflict ephemeral']],
    [
      { ...COMMAND, labels: ['x'], credential: 'c' },
      ['not_applicable credential', 'not_applicable labels'],
    ],
    [{ ...COMMAND, timeouts: { idle: '1m' } }, ['not_applicable timeouts.idle']],
    [{ organization: 'a', onEviction: 'resume', volumeClaims: [STATE] }, ['conflict onEviction']],
    [{ ...COMMAND, onEviction: 'resume' }, ['required volumeClaims']],
    [
      {
        ...COMMAND,
        onEviction: 'resume',
        volumeClaims: [STATE],
        maxAttempts: 3,
        timeouts: { maxAge: '2d', jobTimeout: '1d' },
      },
      [],
    ],
    [
      { ...COMMAND, maxAttempts: 3, timeouts: { maxAge: '2d' } },
      ['not_applicable maxAttempts', 'not_applicable timeouts.maxAge'],
    ],
    [
      { ...COMMAND, onEviction: 'resume', volumeClaims: [STATE], maxAttempts: 0 },
      ['out_of_range maxAttempts'],
    ],
    [
      {
        ...COMMAND,
        onEviction: 'resume',
        volumeClaims: [STATE],
        timeouts: { maxAge: '2h', jobTimeout: '3h' },
      },
      ['conflict timeouts.maxAge'],
    ],
    [{ ...COMMAND, onTerm: 'checkpoint', volumeClaims: [STATE] }, ['conflict onTerm']],
    [{ organization: 'a', job: 'job-a' }, ['not_applicable job']],
    [{ ...COMMAND, job: 'job-a' }, []],
    [{ organization: 'a', onTerm: 'drain' }, ['required stop.drainTimeout']],
    [{ organization: 'a', stop: { drainTimeout: '1m' } }, ['not_applicable stop.drainTimeout']],
    [
      {
        organization: 'a',
        supervisor: 'none',
        onTerm: 'drain',
        stop: { drainTimeout: '1m', signals: 'SIGINT,SIGTERM@5s', cleanupCommand: ['x'] },
      },
      ['conflict onTerm', 'conflict stop.signals', 'conflict stop.cleanupCommand'],
    ],
    [{ ...COMMAND, stop: { gracePeriod: '15s' } }, []],
    [{ organization: 'a', stop: { gracePeriod: '15s' } }, ['not_applicable stop.gracePeriod']],
    [
      { ...COMMAND, stop: { gracePeriod: '15s', signalTimeout: '1s', cleanupTimeout: '1s' } },
      ['conflict stop.gracePeriod', 'conflict stop.gracePeriod'],
    ],
    [{ ...COMMAND, stop: { gracePeriod: '15s', signals: 'SIGINT,SIGTERM@14s' } }, []],
    [
      { ...COMMAND, stop: { gracePeriod: '15s', signals: 'SIGINT,SIGTERM@15s' } },
      ['invalid stop.signals'],
    ],
    [{ organization: 'a', stop: { target: 'everybody' } }, ['invalid stop.target']],
    [
      { organization: 'a', supervisor: 'none', stop: { target: 'process' } },
      ['conflict stop.target'],
    ],
    [{ ...COMMAND, command: ['', 'x'] }, ['invalid command']],
    [{ ...COMMAND, stop: { cleanupCommand: [''] } }, ['invalid stop.cleanupCommand']],
  ])('%j', (input, expected) => {
    expect(refused(input)).toEqual(expected);
  });

  test.each<[object[], string]>([
    [[STATE, { ...STATE, mountPath: '/other' }], 'duplicate volumeClaims.1.name'],
    [[STATE, { ...STATE, name: 'other' }], 'duplicate volumeClaims.1.mountPath'],
    [[{ ...STATE, mountPath: '/holdfast/x' }], 'reserved volumeClaims.0.mountPath'],
    [[{ ...STATE, mountPath: '/etc/holdfast/' }], 'reserved volumeClaims.0.mountPath'],
    [[{ name: 'state', mountPath: '/state' }], 'required volumeClaims.0.storage'],
    [
      [{ name: 'state', mountPath: '/state', claim: 'c', storageClass: 'fast' }],
      'required volumeClaims.0.storage',
    ],
    [
      [{ name: 'state', mountPath: '/state', claim: 'c', selector: {}, annotations: {} }],
      'required volumeClaims.0.storage',
    ],
    [
      [
        {
          name: 'state',
          mountPath: '/state',
          storage: '1Gi',
          annotations: { 'holdfast.dev/writer.x': 'n' },
        },
      ],
      'reserved volumeClaims.0.annotations.holdfast.dev/writer.x',
    ],
    [
      [{ name: 'state', mountPath: '/state', storage: '1Gi', dataSource: { name: 'seed' } }],
      'required volumeClaims.0.dataSource.kind',
    ],
    [[{ ...STATE, storage: 'lots' }], 'invalid volumeClaims.0.storage'],
    [[{ ...STATE, mountPath: 'state' }], 'invalid volumeClaims.0.mountPath'],
  ])('claims %j', (volumeClaims, expected) => {
    expect(refused({ organization: 'a', volumeClaims })).toEqual([expected]);
  });
});

describe('warnings about valid inputs', () => {
  const warnings = (input: Partial<RunnerInput>): readonly string[] => {
    const parsed = parseRunnerInput({ organization: 'a', ...input });
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
    return parsed.spec.warnings;
  };

  test.each<[NonNullable<RunnerInput['stop']>, RunnerInput['onTerm'], RegExp[]]>([
    [{}, 'stop', []],
    [{ signalTimeout: '11s' }, 'stop', [/16s .*GKE/]],
    [{ signalTimeout: '2m' }, 'stop', [/2m5s .*spot.*GKE/]],
    [{ drainTimeout: '10m' }, 'drain', [/10m15s .*cluster-autoscaler.*spot.*GKE.*hard eviction/]],
  ])('a grace period longer than platforms honor: %j', (stop, onTerm = 'stop', expected) => {
    expect(warnings({ stop, onTerm })).toEqual(
      expected.map((message) => expect.stringMatching(message)),
    );
  });

  test('a plain container instead of a native sidecar', () => {
    expect(
      warnings({
        pod: { spec: { containers: [{ name: 'runner' }, { name: 'logs', image: 'l' }] } },
      }),
    ).toEqual([expect.stringMatching(/container logs .*native sidecar/)]);
  });
});
