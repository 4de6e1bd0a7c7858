/** `--output` and `--watch`: one layer for all commands. */
import { describe, expect, test } from '@jest/globals';
import { parse, parseAllDocuments } from 'yaml';
import { workflowUrl, workflowListUrl } from '../../core/domain/temporalUiLinks.ts';
import { jobTable } from '../../cli/job/listJobs.ts';
import { outputForm } from '../../cli/shared/outputOption.ts';
import { runnerTable } from '../../cli/runner/listRunners.ts';
import { setTable } from '../../cli/set/setList.ts';
import { CliError } from '../../cli/shared/exit.ts';
import { Output, type OutputForm } from '../../cli/shared/output.ts';
import { renderLoop } from '../../cli/shared/watch.ts';
import { topLines } from '../../cli/top/top.ts';
import { recordingTerminal, runCli } from '../support/cli.ts';

function printed(form: OutputForm, document: unknown, lines: string[] = ['a line']): string {
  const terminal = recordingTerminal();
  new Output(terminal, form).result(document, lines);
  return terminal.written.stdout;
}

describe('--output', () => {
  test.each<[args: string, form: OutputForm]>([
    ['runner list', 'text'],
    ['runner list --json', 'json'],
    ['runner list -o yaml', 'yaml'],
    ['-oname runner list', 'name'],
    ['runner list --output=wide', 'wide'],
    ['runner list --output wide -o json', 'json'],
    ['run -- make -o yaml --json', 'text'],
    ['runner list -o toml', 'text'],
  ])('%s: %s', (args, form) => {
    expect(outputForm(args.split(' '))).toBe(form);
  });

  const document = {
    runners: [{ id: 'runner-a', labels: ['x: y', '- z'], ends: undefined }, { id: 'runner-b' }],
    more: false,
  };

  test('text and wide print the lines', () => {
    expect(printed('text', document)).toBe('a line\n');
    expect(printed('wide', document)).toBe('a line\n');
  });

  test('JSON and YAML have the same content', () => {
    expect(printed('json', document)).toMatch(/^\{.*\}\n$/);
    expect(parse(printed('yaml', document))).toEqual(JSON.parse(printed('json', document)));
  });

  test.each<[document: object, names: string[]]>([
    [document, ['runner-a', 'runner-b']],
    [{ id: 'job-x', runId: 'r', steps: [{ name: 'unit' }] }, ['job-x']],
    [{ sets: [{ id: 'set-linux', name: 'linux' }] }, ['set-linux']],
    [{ name: 'linux', runners: [{ workflowId: 'w' }] }, ['linux']],
    [{ jobs: [], more: false }, []],
  ])('the names in %j are %j', (each, names) => {
    expect(printed('name', each)).toBe(names.map((name) => `${name}\n`).join(''));
  });

  test.each([['doctor'], ['set', 'schema'], ['sweep']])(
    '%s has no names: a usage error, before anything is done',
    async (...args) => {
      expect(await runCli([...args, '-o', 'name'])).toMatchObject({
        status: 2,
        stdout: '',
        stderr: expect.stringMatching(/^error: --output name: ".*" has no ids to print\n$/),
      });
    },
  );

  test('only one format, and only a valid one', async () => {
    expect(await runCli(['runner', 'list', '--json', '-o', 'yaml'])).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/cannot be used with/),
    });
    expect(await runCli(['runner', 'list', '-o', 'toml'])).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/Allowed choices are text, wide, name, json, yaml/),
    });
  });

  test('a schema as YAML', async () => {
    const { stdout } = await runCli(['set', 'schema', '--output', 'yaml']);
    expect(parse(stdout)).toMatchObject({ title: 'Runner sets (Holdfast)' });
  });
});

describe('wide tables', () => {
  const row = {
    id: 'runner-a',
    runId: 'r',
    status: 'RUNNING',
    startedAt: '1970-01-01T00:00:00.000Z',
    name: 'a-1',
    phase: 'Busy',
  };
  const heads = (text: string): string[] => (text.split('\n')[0] ?? '').split(/ {2,}/);

  test('have the columns of other tables, and more', () => {
    for (const draw of [
      (wide: boolean) => runnerTable([row], 0, wide),
      (wide: boolean) => jobTable([row], 0, wide),
      (wide: boolean) => setTable([{ ...row, name: 'a', unpolledQueues: [] }], 0, wide),
    ]) {
      const [narrow, wide] = [heads(draw(false)), heads(draw(true))];
      expect(wide.filter((head) => narrow.includes(head))).toEqual(narrow);
      expect(wide.length).toBeGreaterThan(narrow.length);
    }
  });

  test('a runner with its name at the CI server and its times', () => {
    expect(runnerTable([row], 5_000, true).split('\n')[1]).toBe(
      'runner-a  Busy   -      -    5s   -        a-1   running  1970-01-01T00:00:00.000Z  -',
    );
  });
});

describe('--watch', () => {
  /** Shows the documents one after the other; the last one has ended. A string is an error of Temporal. */
  async function watched(
    form: OutputForm,
    documents: readonly (object | string)[],
    tty = false,
  ): Promise<{ stdout: string; stderr: string; pauses: number }> {
    const terminal = recordingTerminal({}, tty);
    const left = [...documents];
    let pauses = 0;
    await renderLoop(
      new Output(terminal, form),
      async (output) => {
        const document = left.shift();
        if (typeof document === 'string') throw new CliError('unreachable', document);
        output.result(document, [JSON.stringify(document)]);
        return left.length === 0;
      },
      async () => void (pauses += 1),
    );
    return { ...terminal.written, pauses };
  }

  test('without a terminal: changes, until the end', async () => {
    expect(await watched('text', [{ n: 1 }, { n: 1 }, { n: 2 }])).toEqual({
      stdout: '{"n":1}\n\n{"n":2}\n',
      stderr: '',
      pauses: 2,
    });
  });

  test('as JSON: a line for each change; as YAML: a document for each', async () => {
    expect((await watched('json', [{ n: 1 }, { n: 1 }, { n: 2 }])).stdout).toBe(
      '{"n":1}\n{"n":2}\n',
    );
    expect(
      parseAllDocuments((await watched('yaml', [{ n: 1 }, { n: 2 }])).stdout).map(
        (document) => document.toJS() as unknown,
      ),
    ).toEqual([{ n: 1 }, { n: 2 }]);
  });

  test('on a terminal: redrawn from the top, changed or not', async () => {
    expect((await watched('text', [{ n: 1 }, { n: 1 }], true)).stdout).toBe(
      '\u001B[H\u001B[2J{"n":1}\n'.repeat(2),
    );
  });

  test('on a terminal: no line is wrapped or below its end, and it shows how many are left out', async () => {
    const terminal = recordingTerminal({}, true);
    const output = new Output(
      { ...terminal, stdout: { ...terminal.stdout, columns: 10, rows: 4 } },
      'text',
    );
    await renderLoop(
      output,
      async (frame) => (frame.result({}, ['123456789', '1234567890', '3', '4', '5']), true),
      async () => {},
    );
    expect(terminal.written.stdout.split('\u001B[2J')[1]?.split('\n')).toEqual([
      '123456789',
      '12345678…',
      '… and 3 more lines',
      '',
    ]);
  });

  test('ends when the reader of its output has closed the pipe', async () => {
    let shown = 0;
    await renderLoop(
      new Output({ ...recordingTerminal(), isReaderGone: () => shown === 2 }, 'text'),
      async (output) => {
        output.result({ n: (shown += 1) }, []);
        return shown === 5;
      },
      async () => {},
    );
    expect(shown).toBe(2);
  });

  test('a lost connection is reported once and retried; one that never existed is an error', async () => {
    expect(await watched('text', [{ n: 1 }, 'gone', 'gone', { n: 2 }])).toEqual({
      stdout: '{"n":1}\n\n{"n":2}\n',
      stderr: 'gone\n',
      pauses: 3,
    });
    await expect(watched('text', ['gone', { n: 1 }])).rejects.toThrow('gone');
  });

  test.each([['0s'], ['2 h'], ['2h']])('--interval %s is a usage error', async (interval) => {
    expect(
      await runCli([
        'runner',
        'list',
        '--watch',
        '--interval',
        interval,
        '--address',
        '127.0.0.1:1',
      ]),
    ).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/--interval: /),
    });
  });
});

test('top: counts, and each table with content', () => {
  const row = {
    id: 'runner-a',
    runId: 'r',
    status: 'RUNNING',
    startedAt: '1970-01-01T00:00:00.000Z',
    phase: 'Busy',
  };
  const top = {
    at: '1970-01-01T00:00:05.000Z',
    sets: [],
    runners: [row, { ...row, id: 'runner-b' }, { ...row, id: 'runner-c', phase: 'Idle' }],
    jobs: [],
    more: true,
    endedBadly: { since: '', count: 2, ui: 'http://ui' },
  };
  const lines = topLines(top, 5_000);
  expect(lines[0]).toBe(
    '1970-01-01T00:00:05.000Z  runners: 3 (1 Idle, 2 Busy), sets: 0, jobs: 0; there are more: --limit',
  );
  expect(lines[1]).toBe('2 failed or errored within an hour: http://ui');
  expect(lines).toContain('RUNNERS');
  expect(lines).not.toContain('SETS');
});

test('links into the UI', () => {
  expect(workflowUrl('http://ui', 'a b', 'job-x', 'r')).toBe(
    'http://ui/namespaces/a%20b/workflows/job-x/r/history',
  );
  const link = new URL(
    workflowListUrl(
      'http://ui/base',
      'default',
      "RunnerOutcome IN ('errored', 'failed') AND RunnerSet = 'a&b'",
    ),
  );
  expect([link.pathname, link.searchParams.get('query')]).toEqual([
    '/base/namespaces/default/workflows',
    "RunnerOutcome IN ('errored', 'failed') AND RunnerSet = 'a&b'",
  ]);
});
