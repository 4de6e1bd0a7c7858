import { describe, expect, test } from '@jest/globals';
import { sweepInput } from '../../cli/sweep/sweepCommand.ts';
import { printSweep, sweepLines } from '../../cli/sweep/sweepReport.ts';
import { Output } from '../../cli/shared/output.ts';
import { recordingTerminal, runCli } from '../support/cli.ts';
import { sweepReport } from '../support/sweepReports.ts';

const NO_ERROR = /^$/;

describe('the exit status, and the error', () => {
  test.each<[status: number, error: RegExp, report: Parameters<typeof sweepReport>[0]]>([
    [0, NO_ERROR, {}],
    [0, NO_ERROR, { counts: { orphaned_pod: { found: 1, marked: 1 } } }],
    [0, NO_ERROR, { counts: { orphaned_pod: { found: 1, repaired: 1 } } }],
    [0, NO_ERROR, { dryRun: true, counts: { orphaned_pod: { found: 1 } } }],
    // An optional list that failed is not an error.
    [0, NO_ERROR, { skippedLists: [{ list: 'secrets', reason: 'forbidden' }] }],
    [
      1,
      /^error: nothing was changed, because a list is incomplete: pods \(503\)\n$/,
      { incompleteLists: [{ list: 'pods', reason: '503' }] },
    ],
    [
      1,
      /^error: .*it would condemn 11 of 12 pods .*--force/,
      { aborted: 'it would condemn 11 of 12 pods', counts: { orphaned_pod: { found: 11 } } },
    ],
    [
      1,
      /^error: 3 could not be repaired; the next sweep tries again\n$/,
      {
        counts: {
          orphaned_pod: { found: 4, repaired: 2, failed: 2 },
          expired_pod: { found: 1, failed: 1 },
        },
      },
    ],
    // In addition to all other findings.
    [
      1,
      /^error: 1 could not be repaired/,
      { aborted: 'x', counts: { expired_pod: { found: 1, failed: 1 } } },
    ],
  ])('%i %s: %j', (status, error, changes) => {
    const report = sweepReport(changes);
    const text = recordingTerminal();
    expect(printSweep(new Output(text, 'text'), report)).toBe(status);
    expect(text.written.stderr).toMatch(error);
    const json = recordingTerminal();
    expect(printSweep(new Output(json, 'json'), report)).toBe(status);
    expect(JSON.parse(json.written.stdout)).toEqual(report);
  });
});

test('the report as text: actions with objects and reasons, and skipped objects', () => {
  const report = sweepReport({
    counts: { orphaned_pod: { found: 2, marked: 1, repaired: 1 }, stuck_runner: { found: 1 } },
    skipped: { on_hold: 1, too_young: 12 },
    findings: [
      {
        kind: 'orphaned_pod',
        name: 'runner-a-1',
        location: 'ci',
        reason: 'its workflow was terminated',
        status: 'repaired',
        workflowId: 'runner-a',
        note: 'handed on',
      },
      {
        kind: 'stuck_runner',
        name: 'runner-b',
        location: 'holdfast',
        reason: 'its pod is gone',
        status: 'waits',
      },
    ],
    omittedFindings: 1,
    skippedLists: [{ list: 'secrets', reason: 'may not list secrets' }],
  });
  expect(sweepLines(report).join('\n'))
    .toBe(`kubernetes/c/holdfast/ci: 2 orphaned_pod (1 marked, 1 repaired), 1 stuck_runner; 13 skipped; checked 120 runners, 119 pods

FOUND  KIND          MARKED  REPAIRED  FAILED
2      orphaned_pod  1       1         0
1      stuck_runner  0       0         0

DONE      KIND          WHAT        WHERE     WHY
repaired  orphaned_pod  runner-a-1  ci        its workflow was terminated; handed on
waits     stuck_runner  runner-b    holdfast  its pod is gone
and 1 more

LEFT ALONE  WHY
12          too_young
1           on_hold

Not checked: secrets (may not list secrets)`);
});

test.each([
  [{}, {}],
  [
    { dryRun: true, force: true, standalone: true },
    { dryRun: true, force: true },
  ],
  [
    { org: ['acme', 'beta'], repo: ['acme/app'] },
    { scopes: [{ organization: 'acme' }, { organization: 'beta' }, { repository: 'acme/app' }] },
  ],
  [
    { enterprise: ['big'], credential: 'ghes' },
    { scopes: [{ enterprise: 'big', credential: 'ghes' }] },
  ],
])('the input for %j', (flags, input) => {
  expect(sweepInput(flags)).toEqual(input);
});

test.each<[args: string[], error: RegExp]>([
  [['--repo', 'acme'], /^error: the input of the sweep is invalid\n {2}scopes\.0\.repository/],
  [['--credential', 'ghes'], /^error: --credential: /],
  [
    ['--standalone'],
    /^error: --standalone: the settings of the worker are invalid: .*HOLDFAST_COMPUTE/,
  ],
])('a usage error is reported before the connection to Temporal: %j', async (args, error) => {
  const { status, stdout, stderr } = await runCli(['sweep', ...args], {
    TEMPORAL_ADDRESS: '127.0.0.1:1',
    HOLDFAST_COMPUTE: 'neither',
  });
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
  expect(stderr).toMatch(error);
});

test.each([[['sweep']], [['sweep', '--standalone']]])(
  '%j without Temporal: status 4, with or without other servers',
  async (args) => {
    const { status, stdout, stderr } = await runCli(args, {
      TEMPORAL_ADDRESS: '127.0.0.1:1',
      HOLDFAST_GITHUB_TOKEN: 'x',
      HOLDFAST_COMPUTE: 'process',
    });
    expect({ status, stdout }).toEqual({ status: 4, stdout: '' });
    expect(stderr).toMatch(/^error: cannot reach Temporal at 127\.0\.0\.1:1 /);
  },
);
