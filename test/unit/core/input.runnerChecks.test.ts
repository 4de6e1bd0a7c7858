import { describe, expect, test } from '@jest/globals';
import type { RunnerInput } from '../../../core/contract/index.ts';
import { parseRunnerInput } from '../../../core/input/runner.ts';

const COMMAND = { ciServer: 'none', command: ['work'] } as const;
const STATE = { name: 'state', mountPath: '/state', storage: '1Gi' };

function refused(input: object): string[] {
  const parsed = parseRunnerInput(input, { workflowId: 'runner-x' });
  return parsed.ok ? [] : parsed.errors.map(({ field, message }) => `${field} ${message}`);
}

describe('combinations that cannot work', () => {
  test.each<[object, (string | RegExp)[]]>([
    [{ ...COMMAND }, []],
    [{ ...COMMAND, onTerm: 'checkpoint', onEviction: 'resume', volumeClaims: [STATE] }, []],
    [{ ...COMMAND, onEviction: 'resume', volumeClaims: [STATE], supervisor: 'none' }, []],
    [{ ciServer: 'none' }, [/^command is missing/]],
    [{ ...COMMAND, ephemeral: false }, [/^ephemeral a plain command runs once/]],
    [
      { ...COMMAND, labels: ['x'], credential: 'c' },
      [/^credential has no meaning/, /^labels has no meaning/],
    ],
    [{ ...COMMAND, timeouts: { idle: '1m' } }, [/^timeouts\.idle has no meaning/]],
    [
      { organization: 'a', onEviction: 'resume', volumeClaims: [STATE] },
      [/^onEviction "resume" needs ciServer "none"/],
    ],
    [{ ...COMMAND, onEviction: 'resume' }, [/^volumeClaims .*"state"/]],
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
      [
        /^maxAttempts has no effect without onEviction "resume"/,
        /^timeouts\.maxAge has no effect without onEviction "resume"/,
      ],
    ],
    [
      { ...COMMAND, onEviction: 'resume', volumeClaims: [STATE], maxAttempts: 0 },
      [/^maxAttempts /],
    ],
    [
      {
        ...COMMAND,
        onEviction: 'resume',
        volumeClaims: [STATE],
        timeouts: { maxAge: '2h', jobTimeout: '3h' },
      },
      [/^timeouts\.maxAge of 2h is shorter than timeouts\.jobTimeout/],
    ],
    [
      { ...COMMAND, onTerm: 'checkpoint', volumeClaims: [STATE] },
      [/^onTerm "checkpoint" needs onEviction "resume"/],
    ],
    [{ organization: 'a', job: 'job-a' }, [/^job is for the steps of a job/]],
    [{ ...COMMAND, job: 'job-a' }, []],
    [{ organization: 'a', onTerm: 'drain' }, [/^stop\.drainTimeout is missing/]],
    [{ organization: 'a', stop: { drainTimeout: '1m' } }, [/^stop\.drainTimeout has no effect/]],
    [
      {
        organization: 'a',
        supervisor: 'none',
        onTerm: 'drain',
        stop: { drainTimeout: '1m', signals: 'SIGINT,SIGTERM@5s', cleanupCommand: ['x'] },
      },
      [/^onTerm needs the supervisor/, /^stop\.signals needs/, /^stop\.cleanupCommand needs/],
    ],
    [{ ...COMMAND, stop: { gracePeriod: '15s' } }, []],
    [
      { organization: 'a', stop: { gracePeriod: '15s' } },
      [/^stop\.gracePeriod is for plain commands/],
    ],
    [
      { ...COMMAND, stop: { gracePeriod: '15s', signalTimeout: '1s', cleanupTimeout: '1s' } },
      [
        /^stop\.gracePeriod and stop\.signalTimeout exclude each other/,
        /^stop\.gracePeriod and stop\.cleanupTimeout exclude each other/,
      ],
    ],
    [{ ...COMMAND, stop: { gracePeriod: '15s', signals: 'SIGINT,SIGTERM@14s' } }, []],
    [
      { ...COMMAND, stop: { gracePeriod: '15s', signals: 'SIGINT,SIGTERM@15s' } },
      [/^stop\.signals SIGTERM would come after the end of the grace/],
    ],
    [
      { organization: 'a', stop: { target: 'everybody' } },
      [/^stop\.target must be "process" or "group"/],
    ],
    [
      { organization: 'a', supervisor: 'none', stop: { target: 'process' } },
      [/^stop\.target needs the supervisor/],
    ],
    [{ ...COMMAND, command: ['', 'x'] }, [/^command must begin with the program to run/]],
    [
      { ...COMMAND, stop: { cleanupCommand: [''] } },
      [/^stop\.cleanupCommand must begin with the program to run/],
    ],
  ])('%j', (input, expected) => {
    expect(refused(input)).toEqual(expected.map((message) => expect.stringMatching(message)));
  });

  test.each<[object[], RegExp]>([
    [[STATE, { ...STATE, mountPath: '/other' }], /volumeClaims\.1\.name is used twice/],
    [[STATE, { ...STATE, name: 'other' }], /volumeClaims\.1\.mountPath is used twice/],
    [[{ ...STATE, mountPath: '/holdfast/x' }], /folder of Holdfast's own/],
    [[{ ...STATE, mountPath: '/etc/holdfast/' }], /folder of Holdfast's own/],
    [[{ name: 'state', mountPath: '/state' }], /storage is missing: say how large/],
    [
      [{ name: 'state', mountPath: '/state', claim: 'c', storageClass: 'fast' }],
      /storage is missing: storageClass is for a claim that Holdfast makes/,
    ],
    [
      [{ name: 'state', mountPath: '/state', claim: 'c', selector: {}, annotations: {} }],
      /storage is missing: selector, annotations are for a claim that Holdfast makes/,
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
      /annotations\.holdfast\.dev\/writer\.x is set by Holdfast/,
    ],
    [
      [{ name: 'state', mountPath: '/state', storage: '1Gi', dataSource: { name: 'seed' } }],
      /dataSource\.kind/,
    ],
    [[{ ...STATE, storage: 'lots' }], /is not a size/],
    [[{ ...STATE, mountPath: 'state' }], /absolute path/],
  ])('claims %j', (volumeClaims, message) => {
    expect(refused({ organization: 'a', volumeClaims })).toEqual([expect.stringMatching(message)]);
  });
});

describe('what will disappoint', () => {
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
  ])('a grace beyond what platforms honour: %j', (stop, onTerm = 'stop', expected) => {
    expect(warnings({ stop, onTerm })).toEqual(
      expected.map((message) => expect.stringMatching(message)),
    );
  });

  test('a sidecar that is none', () => {
    expect(
      warnings({
        pod: { spec: { containers: [{ name: 'runner' }, { name: 'logs', image: 'l' }] } },
      }),
    ).toEqual([expect.stringMatching(/container logs .*native sidecar/)]);
  });
});
