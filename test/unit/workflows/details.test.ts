/** The details in Temporal's UI, which renders them as Markdown: external values appear as plain text only. */
import { describe, expect, test } from '@jest/globals';
import type { RunnerStatus } from '../../../core/contract/index.ts';
import { parseRunnerInput } from '../../../core/input/runner.ts';
import { renderDetails } from '../../../workflows/runner/display.ts';
import { SetState } from '../../../workflows/runnerSet/state.ts';
import { areDetailsDue, setDetails } from '../../../workflows/runnerSet/status.ts';
import { setSpec } from '../../support/setModel.ts';

const HOSTILE = '[ok](https://evil.example) <b>`x`</b>\n| Phase | Gone |\u001B[2J';
const SHOWN = '\\[ok\\](https://evil.example) \\<b\\>\\`x\\`\\</b\\> \\| Phase \\| Gone \\|\\[2J';

test('the details of a runner', () => {
  const parsed = parseRunnerInput({ organization: 'acme' }, { workflowId: 'runner-a' });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  const status: RunnerStatus = {
    phase: 'Busy',
    runnerName: 'acme-1',
    job: HOSTILE,
    node: HOSTILE,
    attempt: 2,
    waitingFor: HOSTILE,
    cancel: { mode: 'drain', reason: HOSTILE },
    unregisterAttempts: 0,
    phases: [],
    replacements: [{ runnerName: HOSTILE, cause: 'evicted', replacedBy: 'acme-1' }],
  };
  expect(renderDetails(parsed.spec, status).split('\n')).toEqual([
    '| Runner | Busy |',
    '|---|---|',
    '| Name | acme-1 |',
    '| Scope | acme |',
    `| Node | ${SHOWN} |`,
    `| Job | ${SHOWN} |`,
    `| Waits for | ${SHOWN} |`,
    `| Cancel | drain ${SHOWN} |`,
    `| Replaced | ${SHOWN} (evicted) |`,
  ]);
  const ended = renderDetails(
    parsed.spec,
    { ...status, phase: 'Gone' },
    { outcome: 'errored', cause: 'evicted', message: HOSTILE },
  ).split('\n');
  expect(ended.slice(0, 4)).toEqual([
    '| Runner | Gone |',
    '|---|---|',
    '| Outcome | errored/evicted |',
    `| Message | ${SHOWN} |`,
  ]);
});

describe('the details of a set', () => {
  test.each([
    [200, 0, true],
    [201, 4_999, false],
    [201, 5_000, true],
  ])('with %d runners are updated after %d ms: %s', (runners, ms, due) => {
    const input = { name: 'linux', replicas: runners, template: { organization: 'acme' } };
    const state = SetState.begin(setSpec(input), input, {}, 0);
    const starting = Array.from({ length: runners }, (_none, index) => ({
      workflowId: `runner-linux-${index}`,
    }));
    state.onRunnersStarting(starting, 0);
    expect(areDetailsDue(state, 1_000, 1_000 + ms)).toBe(due);
    const [asOf] = /\| As of \| .*/.exec(setDetails(state, 1_000)) ?? [];
    expect(asOf).toBe(runners > 200 ? '| As of | 1970-01-01T00:00:01.000Z |' : undefined);
  });

  const template = { organization: 'acme', labels: ['linux', '<b>x</b>', '`|`'] };

  test('escape labels, reasons and messages of the CI server', () => {
    const state = SetState.begin(
      setSpec({ replicas: 0, template }),
      { name: 'linux', replicas: 0, template },
      {},
      0,
    );
    state.pause(HOSTILE);
    state.jobReports.onQueueCheckFailed(HOSTILE, 0);
    const lines = setDetails(state, 0).split('\n');
    expect(lines).toContain('| Labels | linux, \\<b\\>x\\</b\\>, \\`\\|\\` |');
    expect(lines).toContain(`| Starts no runner | paused: ${SHOWN} |`);
    expect(lines).toContain(
      `| Check of queued jobs | incomplete since 1970-01-01T00:00:00.000Z: the last check failed: ${SHOWN} |`,
    );
    expect(lines.filter((line) => !/^(\| .* \|.*\||\|---\|---\|)$/.test(line))).toEqual([]);
  });
});
