import { defaultDataConverter } from '@temporalio/common';
import { describe, expect, test } from '@jest/globals';
import { outcomeOf, runnerTable } from '../../cli/runner/listRunners.ts';
import { Output, OUTPUT_FORMS } from '../../cli/shared/output.ts';
import { pendingActivities } from '../../cli/shared/pendingActivities.ts';
import { workflowSummary } from '../../core/domain/workflowSummary.ts';
import { ProgressLine, describeObservation } from '../../cli/shared/phaseLine.ts';
import { cleanDeep, formatAge } from '../../cli/shared/text.ts';
import { CliError } from '../../cli/shared/exit.ts';
import { recordingTerminal } from '../support/cli.ts';

test.each([
  [
    'fits',
    'ephemeral runner for acme/app (linux, x64)',
    'ephemeral runner for acme/app (linux, x64)',
  ],
  ['has a meaning in Markdown', 'echo *', String.raw`echo \*`],
  ['is too long', 'a'.repeat(300), `${'a'.repeat(197)}…`],
  ['consists of characters of four bytes', '🏃'.repeat(100), `${'🏃'.repeat(49)}…`],
])('the summary of a workflow whose text %s', (_what, text, summary) => {
  expect(workflowSummary(text)).toBe(summary);
  expect(Buffer.byteLength(summary)).toBeLessThanOrEqual(200);
});

describe('text from outside', () => {
  test('cleanDeep cleans strings and keys, and keeps other values', () => {
    expect(cleanDeep({ 'a\u0007': ['x\u001B[2J', 1, null, true], at: new Date(0) })).toEqual({
      a: ['x[2J', 1, null, true],
      at: '1970-01-01T00:00:00.000Z',
    });
  });

  test('no text of a runner reaches the terminal as a control character, in any output format', () => {
    for (const form of OUTPUT_FORMS) {
      const terminal = recordingTerminal();
      const output = new Output(terminal, form);
      const nasty = 'x\u001B]0;owned\u0007\u001B[2J';
      output.result({ id: nasty }, [nasty]);
      output.note('phase', nasty, { reason: nasty });
      output.error(
        new CliError('invalid_input', nasty, { fields: [{ field: nasty, message: nasty }] }),
      );
      const line = new ProgressLine(output, nasty, 0);
      line.show(
        {
          phase: 'Busy',
          status: {
            phase: 'Busy',
            runnerName: nasty,
            attempt: 1,
            unregisterAttempts: 0,
            phases: [],
            replacements: [],
            job: nasty,
            waitingFor: nasty,
          },
        },
        0,
      );
      line.end();
      expect(terminal.written.stdout + terminal.written.stderr).not.toMatch(
        // oxlint-disable-next-line no-control-regex -- the test checks that none is printed
        /[\u0000-\u0009\u000B-\u001F\u007F-\u009F]|\\u00/,
      );
    }
  });
});

test.each([
  [-5, '0s'],
  [42_900, '42s'],
  [60_000, '1m'],
  [3 * 3_600_000 + 12 * 60_000 + 59_000, '3h12m'],
  [3_600_000, '1h'],
  [5 * 86_400_000 + 4 * 3_600_000, '5d4h'],
  [86_400_000, '1d'],
])('formatAge(%i) = %s', (ms, expected) => {
  expect(formatAge(ms)).toBe(expected);
});

describe('the list', () => {
  const row = {
    id: 'runner-a',
    runId: 'r',
    status: 'RUNNING',
    startedAt: new Date(0).toISOString(),
  };

  test('aligned columns without trailing spaces', () => {
    const text = runnerTable(
      [
        { ...row, phase: 'Busy', scope: 'acme/app', set: 'linux' },
        {
          ...row,
          id: 'runner-longer-name',
          status: 'COMPLETED',
          phase: 'Gone',
          outcome: 'aborted',
          cause: 'run_timeout',
        },
      ],
      90_000,
    );
    expect(text.split('\n')).toEqual([
      'ID                  PHASE  SCOPE     SET    AGE  OUTCOME',
      'runner-a            Busy   acme/app  linux  1m   -',
      'runner-longer-name  Gone   -         -      1m   aborted/run_timeout',
    ]);
  });

  test.each([
    [{ ...row }, '-'],
    [{ ...row, status: 'COMPLETED', outcome: 'succeeded' }, 'succeeded'],
    [{ ...row, status: 'COMPLETED', outcome: 'errored', cause: 'evicted' }, 'errored/evicted'],
    [{ ...row, status: 'TERMINATED', outcome: 'terminated' }, 'terminated'],
  ])('outcome of %j', (each, expected) => {
    expect(outcomeOf(each)).toBe(expected);
  });

  test('shows how runners without a verdict ended', () => {
    const end = {
      outcome: 'terminated',
      terminatedBy: '1@host',
      message: 'the workflow was terminated by 1@host: tidying up',
    };
    expect(
      runnerTable(
        [
          { ...row, phase: 'Busy' },
          { ...row, id: 'runner-b', status: 'TERMINATED', outcome: 'terminated', end },
        ],
        0,
      ).split('\n'),
    ).toEqual([
      'ID        PHASE  SCOPE  SET  AGE  OUTCOME     NOTE',
      'runner-a  Busy   -      -    0s   -           -',
      'runner-b  -      -      -    0s   terminated  the workflow was terminated by 1@host: tidying up',
    ]);
  });
});

describe('the phase line', () => {
  const status = {
    phase: 'Busy' as const,
    attempt: 1,
    unregisterAttempts: 0,
    phases: [],
    replacements: [],
    runnerName: 'big-1',
    waitingFor: 'the job',
    waitingUntil: '2026-01-01T00:00:00Z',
  };

  test('shows the known facts', () => {
    expect(describeObservation({ phase: 'Busy', status })).toBe(
      'Busy  runner big-1  waits for the job until 2026-01-01T00:00:00Z',
    );
    expect(describeObservation({ phase: 'Idle', problem: 'no worker answers' })).toBe(
      'Idle  (no worker answers)',
    );
  });

  test('without a terminal: one line for each change', () => {
    const terminal = recordingTerminal();
    const line = new ProgressLine(new Output(terminal, 'text'), 'runner-a', 0);
    for (const phase of ['Idle', 'Idle', 'Busy', 'Busy']) line.show({ phase }, 0);
    expect(terminal.written.stdout).toBe(
      '1970-01-01T00:00:00.000Z  runner-a  Idle\n1970-01-01T00:00:00.000Z  runner-a  Busy\n',
    );
  });

  test('on a terminal: one line, redrawn, within the width of the terminal; messages stay', () => {
    const terminal = recordingTerminal({}, true);
    const line = new ProgressLine(new Output(terminal, 'text'), 'runner-a', 0);
    line.show({ phase: 'Busy', status: { ...status, waitingFor: 'x'.repeat(200) } }, 61_000);
    line.message('drain', 'draining', 61_000);
    line.end();
    const lines = terminal.written.stdout.split('\n');
    expect(lines).toHaveLength(3);
    // oxlint-disable-next-line no-control-regex -- how a line is rewritten
    expect(lines[0]).toMatch(/^\r\u001B\[2Krunner-a {2}1m {2}Busy {2}.*…\r\u001B\[2Kdraining$/);
    expect(lines[0]?.split('\r')[1]?.replace('\u001B[2K', '')).toHaveLength(79);
  });

  test('on a terminal without a size: like 80 columns', () => {
    const terminal = recordingTerminal({}, true);
    const line = new ProgressLine(
      new Output({ ...terminal, stdout: { ...terminal.stdout, columns: 0 } }, 'text'),
      'runner-a',
      0,
    );
    line.show({ phase: 'Busy' }, 0);
    expect(terminal.written.stdout).toContain('runner-a  0s  Busy');
  });

  test('with --json: objects on stderr, and only the result on stdout', () => {
    const terminal = recordingTerminal({}, true);
    const line = new ProgressLine(new Output(terminal, 'json'), 'runner-a', 0);
    line.show({ phase: 'Busy', status }, 0);
    expect(terminal.written.stdout).toBe('');
    expect(JSON.parse(terminal.written.stderr)).toMatchObject({
      event: 'phase',
      id: 'runner-a',
      phase: 'Busy',
      status: { runnerName: 'big-1' },
    });
  });
});

test('pending activities: attempts, all causes of the last failure, the next retry', async () => {
  const at = { seconds: 60 as never, nanos: 500_000_000 };
  const failure = { message: 'Activity failed', cause: { message: 'runner is busy (422)' } };
  const [waiting, running, other] = await pendingActivities(
    {
      pendingActivities: [
        {
          activityId: '7',
          activityType: { name: 'unregister' },
          state: 1,
          attempt: 4,
          lastFailure: failure,
          nextAttemptScheduleTime: at,
          lastStartedTime: at,
        },
        {
          activityId: 'ended/x',
          activityType: { name: 'awaitPod' },
          state: 2,
          attempt: 1,
          scheduledTime: at,
          heartbeatDetails: {
            payloads: [
              {
                metadata: { encoding: Buffer.from('json/plain') },
                data: Buffer.from('{"progress":"looking","rejections":{}}'),
              },
            ],
          },
        },
        {
          activityId: '9',
          activityType: { name: 'another' },
          state: 2,
          attempt: 1,
          heartbeatDetails: {
            payloads: [
              { metadata: { encoding: Buffer.from('binary/plain') }, data: Buffer.from('?') },
            ],
          },
        },
      ],
    },
    defaultDataConverter,
  );
  expect(waiting).toEqual({
    id: '7',
    type: 'unregister',
    state: 'scheduled',
    attempt: 4,
    lastFailure: 'Activity failed: runner is busy (422)',
    lastStartedAt: '1970-01-01T00:01:00.500Z',
    nextRetryAt: '1970-01-01T00:01:00.500Z',
  });
  expect(running).toEqual({
    id: 'ended/x',
    type: 'awaitPod',
    state: 'started',
    attempt: 1,
    progress: 'looking',
  });
  expect(other).toEqual({ id: '9', type: 'another', state: 'started', attempt: 1 });
});
