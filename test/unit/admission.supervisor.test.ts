/** Admission and supervisor accept and reject the same inputs, from the input to the container's variables and back. */
import { constants } from 'node:os';
import { describe, expect, test } from '@jest/globals';
import { podSpec } from '../../activities/compute/kubernetes/podSpec.ts';
import { parseStopSignals } from '../../core/domain/stopSignals.ts';
import { parseRunnerInput } from '../../core/input/runner.ts';
import type { TimeoutPolicy } from '../../core/input/timeoutPolicy.ts';
import type { RunnerInput, StopInput } from '../../core/contract/index.ts';
import { readOptions, UsageError } from '../../supervisor/settings/options.ts';

const COMMAND: RunnerInput = { ciServer: 'none', image: 'img', command: ['work'] };
const identity = { workflowId: 'runner-a', firstRunId: 'r', attempt: 1 };

const admit = (stop: StopInput, policy: TimeoutPolicy | 'elsewhere' = {}) =>
  parseRunnerInput({ ...COMMAND, stop }, { policy });

/** The settings that the supervisor reads in an admitted runner's pod. */
function supervised(stop: StopInput) {
  const admitted = admit(stop);
  if (!admitted.ok) throw new Error(JSON.stringify(admitted.errors));
  const [runner] =
    podSpec({ ...admitted.spec.pod, identity }, { supervisor: { image: 'sup' } }, 'main', undefined)
      .spec?.containers ?? [];
  const env = Object.fromEntries(
    (runner?.env ?? []).map(({ name, value }) => [name, value?.replaceAll('$$', '$')]),
  );
  return readOptions(['--', 'work'], env);
}

/** The supervisor alone, with the variable that contains the signals. */
const directly = (signals: string) => () =>
  readOptions(['--', 'work'], { HOLDFAST_SIGNAL_TIMEOUT: '10s', HOLDFAST_STOP_SIGNALS: signals });

describe('stop.signals, in a grace period of 10 s', () => {
  test.each([
    ['SIGINT', [['SIGINT', 0]]],
    [
      'SIGINT,SIGTERM',
      [
        ['SIGINT', 0],
        ['SIGTERM', 5_000],
      ],
    ],
    [
      'SIGINT, SIGTERM@2s, SIGQUIT@8s',
      [
        ['SIGINT', 0],
        ['SIGTERM', 2_000],
        ['SIGQUIT', 8_000],
      ],
    ],
    [
      'SIGINT@0,SIGTERM@9999ms',
      [
        ['SIGINT', 0],
        ['SIGTERM', 9_999],
      ],
    ],
    [
      'SIGUSR1@0s,SIGTERM@1.5s',
      [
        ['SIGUSR1', 0],
        ['SIGTERM', 1_500],
      ],
    ],
  ])('%s', (signals, expected) => {
    expect(
      supervised({ signals })?.plan.stopSignals.map(({ signal, afterMs }) => [signal, afterMs]),
    ).toEqual(expected);
  });

  const refusedBecause = (fault: string): object => ({
    ok: false,
    errors: [{ code: 'invalid', field: 'stop.signals', message: expect.stringContaining(fault) }],
  });
  test.each([
    ['TERM', '"TERM" is not a signal'],
    ['SIGNOPE', '"SIGNOPE" is not a signal'],
    ['SIGINT,', '"" is not a signal'],
    ['sigint', '"sigint" is not a signal'],
    ['SIGKILL', 'SIGKILL cannot be handled'],
    ['SIGINT,SIGSTOP@1s', 'SIGSTOP cannot be handled'],
    ['SIGINT@1s', 'SIGINT is the first signal'],
    ['SIGINT,SIGTERM@10s', 'SIGTERM would come after the end of the grace'],
    ['SIGINT,SIGTERM@5s,SIGQUIT@4s', 'SIGQUIT would come before'],
    ['SIGINT,SIGTERM@5s@6s', '"5s@6s" is not a time'],
    ['SIGINT,SIGTERM@soon', '"soon" is not a time'],
    ['SIGINT,SIGTERM@5', '"5" is not a time'],
    ['SIGINT,SIGTERM@', '"" is not a time'],
  ])('%j is rejected', (signals, fault) => {
    expect(admit({ signals })).toMatchObject(refusedBecause(fault));
    expect(directly(signals)).toThrow(UsageError);
  });

  test('"" is rejected by admission, and counts as absent for the variable', () => {
    expect(admit({ signals: '' })).toMatchObject(refusedBecause('"" is not a signal'));
    const absent = readOptions(['--', 'work'], { HOLDFAST_SIGNAL_TIMEOUT: '10s' });
    expect(directly('')()).toEqual(absent);
  });

  test('every signal of this machine is known, except the two that cannot be handled', () => {
    const known = Object.keys(constants.signals).filter((name) => directly(name));
    for (const name of known.filter((each) => each !== 'SIGKILL' && each !== 'SIGSTOP'))
      expect(parseStopSignals(name, 1)).toEqual([{ signal: name, afterMs: 0 }]);
  });

  test('counted within the grace period of the scope; if that is unknown, only the worker rejects', () => {
    const signals = 'SIGINT,SIGTERM@30s';
    expect(admit({ signals }).ok).toBe(false);
    expect(admit({ signals }, { default: { signalTimeout: '1m' } }).ok).toBe(true);
    expect(admit({ signals }, 'elsewhere').ok).toBe(true);
    expect(admit({ signals, signalTimeout: '20s' }, 'elsewhere').ok).toBe(false);
    expect(admit({ signals: 'SIGINT,SIGNOPE' }, 'elsewhere').ok).toBe(false);
  });

  test.each(['x'.repeat(5_000), `SIGINT@${'9x'.repeat(2_500)}`])(
    'rejected with a short message, with every quoted value',
    (signals) => {
      expect(() => parseStopSignals(signals, 1_000)).toThrow(
        /^"[^"]{1,60}" is not a (signal|time): write for example SIGINT/,
      );
    },
  );
});

test.each<[StopInput, object]>([
  [{}, { signalTimeoutMs: 10_000, cleanupTimeoutMs: 5_000, signalTarget: 'group', cleanup: false }],
  [
    { gracePeriod: '15s' },
    { signalTimeoutMs: 15_000, cleanupTimeoutMs: 5000, signalTarget: 'process' },
  ],
  [
    { gracePeriod: '15s', target: 'group' },
    { signalTimeoutMs: 15_000, signalTarget: 'group' },
  ],
  [
    { signalTimeout: '0.5ms', target: 'process' },
    { signalTimeoutMs: 1, signalTarget: 'process' },
  ],
  [
    { cleanupTimeout: '1d', cleanupCommand: ['sh', '-c', 'echo $$ $(HOME)'] },
    { cleanupTimeoutMs: 86_400_000, cleanup: true },
  ],
])('the sequence %j reaches the supervisor', (stop, plan) => {
  const options = supervised(stop);
  expect(options?.plan).toMatchObject(plan);
  expect(options?.cleanupCommand).toEqual(stop.cleanupCommand);
});
