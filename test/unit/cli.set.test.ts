import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, describe, expect, test } from '@jest/globals';
import { CliError } from '../../cli/shared/exit.ts';
import { formatFieldError } from '../../cli/runner/runnerFlags.ts';
import { admitSets } from '../../cli/set/setAdmission.ts';
import { changeText, diffSets, startsRollout } from '../../core/domain/setDiff.ts';
import { readSetDocuments } from '../../cli/set/setDocuments.ts';
import { setLines } from '../../cli/set/setGet.ts';
import { parseRoutingMemo } from '../../activities/runnerSet/listRoutingInfo.ts';
import { setTable } from '../../cli/set/setList.ts';
import type { RunnerSetInput } from '../../core/contract/index.ts';
import { CliProcess, runCli } from '../support/cli.ts';
import { statusOf } from '../support/demandSets.ts';

const folder = mkdtempSync(join(tmpdir(), 'hf-cli-set-'));
afterAll(() => rmSync(folder, { recursive: true }));
const file = (text: string): string => {
  const path = join(folder, 'sets.yaml');
  writeFileSync(path, text);
  return path;
};

const names = (text: string): unknown[] =>
  admitSets(readSetDocuments(text, 'f'), 'f').map(({ input: { name } }) => name);

/** The error of an invalid file: the message, then a line for each field. */
function faults(text: string): string[] {
  let error: unknown;
  try {
    admitSets(readSetDocuments(text, 'f'), 'f');
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toBeInstanceOf(CliError);
  const { exitStatus, message, fields = [] } = error as CliError;
  expect(exitStatus).toBe(2);
  return [message, ...fields.map(formatFieldError)];
}

const LINUX =
  'name: linux\nminIdle: 1\nmax: 20\ntemplate: { organization: acme, labels: [linux] }\n';
const STATIC = 'name: static\nreplicas: 3\ntemplate: { repository: acme/app, ephemeral: false }\n';

describe('the documents of a file', () => {
  test.each<[string, string, string[]]>([
    ['one', LINUX, ['linux']],
    [
      'several, with empty ones between them',
      `---\n${LINUX}---\n---\n# nothing\n---\n${STATIC}...\n`,
      ['linux', 'static'],
    ],
    [
      'a list',
      `- { name: a, replicas: 0, template: &t { organization: acme } }\n- { name: b, replicas: 1, template: *t }\n- { name: c, replicas: 1, template: { <<: *t, labels: [x] } }\n`,
      ['a', 'b', 'c'],
    ],
    [
      'a list and a document',
      `[{ name: a, replicas: 0, template: { organization: acme } }]\n---\n${LINUX}`,
      ['a', 'linux'],
    ],
    [
      'JSON',
      JSON.stringify(
        { name: 'j', replicas: 1, template: { organization: 'acme' } },
        undefined,
        '\t',
      ),
      ['j'],
    ],
    [
      'a JSON list',
      JSON.stringify([{ name: 'j', replicas: 1, template: { organization: 'acme' } }]),
      ['j'],
    ],
    [
      'with a byte order mark and carriage returns',
      `\uFEFF${LINUX.replaceAll('\n', '\r\n')}`,
      ['linux'],
    ],
  ])('%s', (_title, text, expected) => {
    expect(names(text)).toEqual(expected);
  });

  test('hundreds of sets share one template', () => {
    const shared = Array.from(
      { length: 300 },
      (_none, i) =>
        `- { name: s${i}, replicas: 1, template: ${i === 0 ? '&t { organization: acme }' : '*t'} }\n`,
    );
    expect(names(shared.join(''))).toHaveLength(300);
  });

  test('merged fields are set', () => {
    const [, merged] = admitSets(
      readSetDocuments(
        '- { name: a, replicas: 0, template: &t { organization: acme, image: i } }\n- { name: c, replicas: 1, template: { <<: *t, labels: [x] } }',
        'f',
      ),
      'f',
    );
    expect(merged?.input.template).toEqual({ organization: 'acme', image: 'i', labels: ['x'] });
  });

  test.each(['- ', '[', '{"a":'])('a very long repetition of %j', (open) => {
    const told = faults(open.repeat(20_000));
    expect(told).toEqual(
      expect.arrayContaining([
        'f is neither YAML nor JSON; nothing was applied',
        expect.stringMatching(/nested too deeply/),
      ]),
    );
    expect(told.filter((line) => line.includes('call stack'))).toEqual([]);
  });

  test.each<[string, string, unknown[]]>([
    [
      'no set',
      '',
      [
        'f must contain a set: name, template, and replicas or minIdle and max; see "holdfast set apply --help"',
      ],
    ],
    [
      'only empty documents',
      '---\n---\n# none\n',
      [expect.stringMatching(/^f must contain a set/)],
    ],
    ['an empty list', '[]', [expect.stringMatching(/^f must contain a set/)]],
    [
      'no YAML',
      'a: [',
      [
        'f is neither YAML nor JSON; nothing was applied',
        expect.stringMatching(/^document 1 .*|^document 1: .*line 1, column 5$/),
      ],
    ],
    [
      'invalid YAML in the second of two',
      `${LINUX}---\na: "\n`,
      [
        'f is neither YAML nor JSON; nothing was applied',
        expect.stringMatching(/^document 2: .*line \d/),
      ],
    ],
    [
      'a repeated field',
      `${LINUX}max: 3\n`,
      [
        'f is neither YAML nor JSON; nothing was applied',
        'document 1: Map keys must be unique at line 5, column 1',
      ],
    ],
    [
      'an unknown alias',
      'name: *x',
      [
        'f is neither YAML nor JSON; nothing was applied',
        expect.stringMatching(/^document 1: Unresolved alias/),
      ],
    ],
    [
      'aliases that grow exponentially',
      `a: &a [1,1,1,1,1,1,1,1,1]\n${['b', 'c', 'd', 'e', 'f', 'g'].map((key, i) => `${key}: &${key} [${Array.from({ length: 9 }, () => `*${'abcdefg'[i]}`).join(',')}]\n`).join('')}`,
      [
        'f is neither YAML nor JSON; nothing was applied',
        expect.stringMatching(/^document 1: Excessive alias count/),
      ],
    ],
    [
      'no object',
      `${LINUX}---\njust text\n`,
      [
        '1 of 2 sets in f are invalid; nothing was applied',
        'document 2, line 6 must be an object with the fields of a set: name, template, and replicas or minIdle and max',
      ],
    ],
    [
      'a list in a list',
      '- [1]',
      [
        'the set in f is invalid; nothing was applied',
        expect.stringMatching(/^document 1, item 1, line 1 must be an object/),
      ],
    ],
    [
      'an unknown field',
      `${LINUX}maxx: 3\n`,
      [
        'the set in f is invalid; nothing was applied',
        'document 1 (linux), line 5: maxx is not a known field; check the spelling',
      ],
    ],
    [
      'an unknown field of the template',
      'name: linux\nreplicas: 1\ntemplate:\n  organization: acme\n  lables: [x]\n',
      [
        'the set in f is invalid; nothing was applied',
        'document 1 (linux), line 5: template.lables is not a known field; check the spelling',
      ],
    ],
    [
      'one invalid set of two',
      `${LINUX}---\nname: bad\nreplicas: 1\nmax: 2\ntemplate: { organization: acme }\n`,
      [
        '1 of 2 sets in f are invalid; nothing was applied',
        'document 2 (bad), line 8: max and replicas exclude each other: give replicas, or max with minIdle',
      ],
    ],
    [
      'many errors at once',
      `name: a\nmax: 1\nminIdle: 2\ntemplate: {}\n---\n- name: b\n  replicas: -1\n- name: c\n  schedules: [{ cron: "0 8 * * 8-9", duration: 10h, replicas: 1 }, { cron: "0 8 * * 1", timeZone: Berlin, duration: 1h, max: 2 }]\n  replicas: 1\n  template: { organization: acme, name: x }\n`,
      [
        '3 of 3 sets in f are invalid; nothing was applied',
        'document 1 (a), line 3: minIdle is more than max (1)',
        'document 1 (a), line 4: template.organization is missing: give exactly one of organization, repository or enterprise',
        'document 2, item 1 (b), line 7: replicas must be 0 or more',
        'document 2, item 1 (b), line 6: template is required: it is the input of each runner',
        expect.stringMatching(
          /^document 2, item 2 \(c\), line 9: schedules\.0\.cron: "0 8 \* \* 8-9" is not a cron expression of five fields: /,
        ),
        'document 2, item 2 (c), line 9: schedules.1.cron: "Berlin" is not a time zone; write for example "Europe/Berlin"',
        'document 2, item 2 (c), line 11: template.name is given by the set; remove it',
      ],
    ],
    [
      'a repeated name',
      `${LINUX}---\n${STATIC}---\n${LINUX}`,
      [
        '1 of 3 sets in f are invalid; nothing was applied',
        'document 3 (linux), line 10: name is also the name of document 1, line 1; give each set its own name',
      ],
    ],
  ])('%s', (_title, text, expected) => {
    expect(faults(text)).toEqual(expected);
  });
});

describe('the changes', () => {
  const base: RunnerSetInput = {
    name: 's',
    minIdle: 1,
    max: 5,
    template: { organization: 'acme', labels: ['a'], env: { KEY: 'hush' } },
  };
  const rows: [string, RunnerSetInput, Partial<RunnerSetInput>, string[]][] = [
    ['nothing', base, {}, []],
    [
      'none, with another order of fields',
      base,
      { template: { env: { KEY: 'hush' }, labels: ['a'], organization: 'acme' } },
      [],
    ],
    ['a value', base, { max: 7 }, ['~ max: 5 → 7']],
    [
      'to a fixed number',
      base,
      { replicas: 3, minIdle: undefined, max: undefined } as never,
      ['- max: 5', '- minIdle: 1', '+ replicas: 3'],
    ],
    [
      'a list of strings is one value',
      base,
      { template: { ...base.template, labels: ['a', 'b'] } },
      ['~ template.labels: [a] → [a, b]'],
    ],
    [
      'values of an environment are not shown',
      base,
      { template: { ...base.template, env: { KEY: 'other', NEW: 'hush' } } },
      ['~ template.env.KEY: (not shown)', '+ template.env.NEW: (not shown)'],
    ],
    [
      'a whole environment',
      base,
      { template: { organization: 'acme', labels: ['a'] } },
      ['- template.env.KEY: (not shown)'],
    ],
    [
      'an empty environment',
      base,
      { template: { ...base.template, env: {} } },
      ['+ template.env: (not shown)', '- template.env.KEY: (not shown)'],
    ],
    [
      'environment of a container: names are shown, values are not',
      base,
      {
        template: {
          ...base.template,
          pod: {
            metadata: { labels: { env: 'prod' } },
            spec: {
              containers: [{ name: 'runner', env: [{ name: 'A', value: 'hush' }] }],
              initContainers: [
                { env: [{ name: 'B', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }] },
              ],
            },
          },
        },
      },
      [
        '+ template.pod.metadata.labels.env: prod',
        '+ template.pod.spec.containers.0.env.0.name: A',
        '+ template.pod.spec.containers.0.env.0.value: (not shown)',
        '+ template.pod.spec.containers.0.name: runner',
        '+ template.pod.spec.initContainers.0.env.0.name: B',
        '+ template.pod.spec.initContainers.0.env.0.valueFrom.secretKeyRef.key: k',
        '+ template.pod.spec.initContainers.0.env.0.valueFrom.secretKeyRef.name: s',
      ],
    ],
    [
      'schedules are named by their index',
      { ...base, schedules: [{ cron: '0 8 * * *', duration: '1h', replicas: 1 }] },
      { schedules: [{ cron: '0 9 * * *', duration: '1h', replicas: 1 }] },
      ['~ schedules.0.cron: 0 8 * * * → 0 9 * * *'],
    ],
    [
      'a key with dots is not a path',
      base,
      { template: { ...base.template, pod: { metadata: { annotations: { 'a.b/c': 'x' } } } } },
      ['+ template.pod.metadata.annotations."a.b/c": x'],
    ],
    [
      'holds and pauses that are not mentioned stay',
      { ...base, holds: ['r'], paused: true },
      {},
      [],
    ],
    [
      'holds and pauses that are mentioned',
      { ...base, holds: ['r'], paused: true },
      { holds: [], paused: false },
      ['~ holds: [r] → []', '~ paused: true → false'],
    ],
    [
      'false and 0 are values',
      { ...base, minIdle: 0 },
      { minIdle: 1, paused: false },
      ['~ minIdle: 0 → 1', '+ paused: false'],
    ],
  ];
  test.each(rows)('%s', (_title, before, change, expected) => {
    const after = { ...base, ...change };
    const changes = diffSets(before, after);
    expect(changes.map(changeText)).toEqual(expected);
    expect(JSON.stringify(changes)).not.toMatch(/hush|other/);
    expect(startsRollout(changes)).toBe(
      expected.some((line) => line.slice(2).startsWith('template')),
    );
  });
});

describe('text output', () => {
  const set = statusOf('linux', {
    desired: 3,
    min: 1,
    max: 20,
    jobs: { queued: 1, running: 2, startedTotal: 9, completedTotal: 7 },
    blockedReason: 'never_registered ×2',
    waitingFor: 'next try: not until 2026-01-01T00:01:00.000Z',
    holds: ['runner-linux-aaaaaaaaaa'],
    runnerCounts: { starting: 0, idle: 0, busy: 1, draining: 1 },
    runners: [
      {
        workflowId: 'runner-linux-aaaaaaaaaa',
        runnerName: 'linux-aaaaaaaaaa-123456789a',
        templateHash: 'g1',
        state: 'busy',
        onHold: true,
        startedAt: '2025-12-31T23:00:00.000Z',
        slot: 0,
      },
      {
        workflowId: 'runner-linux-bbbbbbbbbb',
        templateHash: 'g0',
        state: 'draining',
        onHold: false,
        startedAt: '2025-12-31T23:59:18.000Z',
      },
    ],
  });
  const now = Date.parse('2026-01-01T00:00:00Z');
  const base = {
    id: 'set-linux',
    name: 'linux',
    runId: 'r',
    status: 'RUNNING',
    startedAt: '2025-12-30T00:00:00.000Z',
    scope: 'acme',
    labels: ['linux'],
    pendingActivities: [],
    unpolledQueues: [],
  };

  test('one set', () => {
    expect(setLines({ ...base, set }, now).join('\n')).toBe(`Set:              linux
Id:               set-linux
Status:           running
Scope:            acme
Labels:           linux
Template:         g1
Wanted:           3 (at least 1 idle, at most 20)
Runners:          2: 0 starting, 0 idle, 1 busy, 1 draining
Jobs:             1 queued, 2 running; 9 started and 7 completed in all
Starts no runner: never_registered ×2
Waits for:        next try: not until 2026-01-01T00:01:00.000Z
Holds:            runner-linux-aaaaaaaaaa
Started:          2025-12-30T00:00:00.000Z (2d ago)

RUNNER                   STATE     TEMPLATE  AGE  HELD  SLOT  NAME
runner-linux-aaaaaaaaaa  busy      g1        1h   held  0     linux-aaaaaaaaaa-123456789a
runner-linux-bbbbbbbbbb  draining  g0 (old)  42s  -     -     -`);
  });

  test('why no runner starts, in full, and shortened in a list', () => {
    const message = `no PriorityClass with name ${'x'.repeat(100)} was found`;
    const failure = { runner: 'runner-linux-cccccccccc', message, at: '2025-12-31T23:00:00.000Z' };
    expect(setLines({ ...base, set: { ...set, lastFailure: failure } }, now)).toContain(
      `Last failure:     runner-linux-cccccccccc: ${message}`,
    );
    const row = { ...base, blockedReason: 'pod_rejected x6', lastFailure: failure };
    expect(setTable([row], now, true)).toContain(
      `pod_rejected x6: ${message} (runner-linux-cccccccccc)`,
    );
    expect(setTable([row], now)).toMatch(
      /pod_rejected x6: no PriorityClass with name x{72}… \(runner-linux-cccccccccc\)/,
    );
  });

  test('a set that has ended, and one that does not respond', () => {
    expect(
      setLines(
        {
          ...base,
          status: 'FAILED',
          endedAt: '2025-12-31T00:00:00.000Z',
          end: { outcome: 'failed', message: 'Invalid input: x' },
        },
        now,
      ),
    ).toEqual(
      expect.arrayContaining([
        'End:              failed: Invalid input: x',
        'Ended:            2025-12-31T00:00:00.000Z (1d ago)',
      ]),
    );
    expect(setLines({ ...base, note: 'no worker' }, now).at(-1)).toBe(
      'Note:             no worker',
    );
  });

  test('a list', () => {
    const row = {
      id: 'set-linux',
      name: 'linux',
      runId: 'r',
      status: 'RUNNING',
      startedAt: '2025-12-30T00:00:00.000Z',
      scope: 'acme',
      unpolledQueues: [],
    };
    const counted = {
      ...row,
      desired: 3,
      min: 1,
      max: 20,
      runners: { starting: 1, idle: 0, busy: 2, draining: 0 },
      jobs: set.jobs,
    };
    expect(
      setTable(
        [
          counted,
          { ...counted, name: 'fixed', min: 3, max: 3, blockedReason: 'paused: x' },
          { ...counted, name: 'gone', deleting: '' },
          { ...row, name: 'mute', note: 'no worker answered within 3 s' },
          {
            ...counted,
            name: 'stuck',
            unpolledQueues: [{ taskQueue: 'q-ci-ghes', fix: 'add it' }],
          },
          { ...row, name: 'was', status: 'COMPLETED' },
        ],
        now,
      ),
    ).toBe(
      `NAME   WANTED  BOUNDS  STARTING  IDLE  BUSY  DRAINING  QUEUED  RUNNING  SCOPE  AGE  NOTE
linux  3       1-20    1         0     2     0         1       2        acme   2d   -
fixed  3       3       1         0     2     0         1       2        acme   2d   paused: x
gone   3       1-20    1         0     2     0         1       2        acme   2d   is being deleted
mute   ?       ?       ?         ?     ?     ?         ?       ?        acme   2d   no worker answered within 3 s
stuck  3       1-20    1         0     2     0         1       2        acme   2d   no worker polls q-ci-ghes
was    -       -       -         -     -     -         -       -        acme   2d   completed`,
    );
  });

  test.each<[Record<string, unknown> | undefined, object | undefined]>([
    [undefined, undefined],
    [{ routing: 'x' }, undefined],
    [
      { routing: { labels: ['a'], scope: 'acme', scopeKind: 'organization' } },
      { labels: ['a'], scope: 'acme', scopeKind: 'organization' },
    ],
    [
      {
        routing: {
          labels: ['a'],
          scope: 'acme',
          scopeKind: 'organization',
          group: { id: '7' },
          atCapacity: true,
          draining: true,
        },
      },
      {
        labels: ['a'],
        scope: 'acme',
        scopeKind: 'organization',
        group: { id: '7' },
        atCapacity: true,
        draining: true,
      },
    ],
    [{ routing: { labels: ['a'], scope: 'acme' } }, undefined],
  ])('the text of the memo %j', (memo, expected) => {
    expect(parseRoutingMemo(memo)).toEqual(expected);
  });
});

describe('usage', () => {
  test.each<[string[], RegExp]>([
    [['set', 'aply'], /unknown command 'aply'.*Did you mean apply\?/],
    [['set', 'apply'], /required option '-f, --file <path>' not specified/],
    [['set', 'apply', '-f', '/does/not/exist'], /--file: .*\/does\/not\/exist/],
    [['set', 'get'], /missing required argument 'name'/],
    [['set', 'scale', 'x'], /--replicas .*--min-idle and --max/],
    [['set', 'scale', 'x', '--replicas', '1', '--max', '3'], /--replicas: .*--min-idle and --max/],
    [['set', 'scale', 'x', '--replicas', '-1'], /--replicas/],
    [['set', 'scale', 'x', '--max', '1.5'], /--max: "1\.5"/],
    [['set', 'hold', 'x'], /missing required argument 'runner'/],
    [['set', 'list', '--limit', '0'], /--limit: "0"/],
  ])('%j: status 2, one line', async (args, message) => {
    const { status, stdout, stderr } = await runCli([...args, '--address', '127.0.0.1:1']);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toMatch(message);
    expect(stderr.trim().split('\n')).toHaveLength(1);
  });

  test.each(['apply', 'list', 'get', 'scale', 'pause', 'resume', 'hold', 'delete'])(
    'set %s has help with examples',
    async (command) => {
      const { status, stdout } = await runCli(['set', command, '--help']);
      expect(status).toBe(0);
      expect(stdout).toMatch(new RegExp(`^ {2}\\$ .*holdfast set ${command} `, 'm'));
    },
  );

  test('invalid input is reported before the connection to Temporal, also as JSON', async () => {
    const path = file(`${LINUX}maxx: 1\n---\nname: b\n`);
    const text = await runCli(['set', 'apply', '-f', path, '--address', '127.0.0.1:1']);
    expect(text).toMatchObject({ status: 2, stdout: '' });
    expect(text.stderr.split('\n')[0]).toBe(
      `error: 2 of 2 sets in ${path} are invalid; nothing was applied`,
    );
    expect(text.stderr).toContain(
      '  document 1 (linux), line 5: maxx is not a known field; check the spelling\n',
    );
    const json = await runCli(['set', 'apply', '-f', path, '--address', '127.0.0.1:1', '--json']);
    expect(json).toMatchObject({ status: 2, stdout: '' });
    expect(JSON.parse(json.stderr)).toMatchObject({
      error: {
        code: 'invalid_input',
        fields: expect.arrayContaining([
          {
            field: 'document 2 (b), line 7: template',
            message: 'is required: it is the input of each runner',
          },
        ]),
      },
    });
  });

  test("nothing listens at the address: status 4, after the template's warnings", async () => {
    const path = file(
      'name: a\nreplicas: 1\ntemplate: { organization: acme, onTerm: drain, stop: { drainTimeout: 1h } }\n',
    );
    const { status, stderr } = await runCli([
      'set',
      'apply',
      '-f',
      path,
      '--address',
      '127.0.0.1:1',
    ]);
    expect(status).toBe(4);
    expect(stderr).toMatch(/^warning: a: .*\nerror: cannot reach Temporal at 127\.0\.0\.1:1/);
  });

  test('help loads no Temporal SDK', async () => {
    const run = new CliProcess(['set', 'apply', '--help'], { NODE_DEBUG: 'module,esm' });
    expect((await run.exited).code).toBe(0);
    expect(run.stderr).toContain('commander');
    expect(run.stderr).not.toContain('@temporalio');
  });
});

describe('the JSON Schema', () => {
  async function accepts(document: unknown): Promise<boolean> {
    const { stdout } = await runCli(['set', 'schema']);
    return new Ajv2020({ strict: false }).compile(JSON.parse(stdout) as object)(document);
  }
  const SET = {
    name: 'linux',
    minIdle: 1,
    max: 20,
    template: {
      organization: 'acme',
      labels: ['linux'],
      pod: { spec: { nodeSelector: { a: 'b' } } },
    },
  };

  test.each<[what: string, document: unknown, accepted: boolean]>([
    ['a set', SET, true],
    [
      'a list of sets',
      [
        SET,
        { ...SET, schedules: [{ cron: '0 7 * * 1-5', duration: '12h', minIdle: 10, max: 400 }] },
      ],
      true,
    ],
    ['without a template', { name: 'linux', replicas: 1 }, false],
    ['an unknown field', { ...SET, replica: 3 }, false],
    ['an unknown field of the template', { ...SET, template: { organisation: 'acme' } }, false],
    [
      'a name in the template, which the set generates',
      { ...SET, template: { ...SET.template, name: 'x' } },
      false,
    ],
    ['an invalid number', { ...SET, max: '20' }, false],
    ['an invalid name', { ...SET, name: 'a b' }, false],
  ])('%s', async (_what, document, accepted) => {
    expect(await accepts(document)).toBe(accepted);
  });
});
