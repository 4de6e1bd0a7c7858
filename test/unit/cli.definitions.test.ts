/** `holdfast job apply` and its siblings, as far as they get without Temporal. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, describe, expect, test } from '@jest/globals';
import { scheduleFault } from '../../activities/runnerSet/schedules.ts';
import { parseJobDefinition } from '../../core/input/jobDefinition.ts';
import { definitionLines } from '../../cli/job/definitionShow.ts';
import { runCli } from '../support/cli.ts';

const folder = mkdtempSync(join(tmpdir(), 'hf-cli-definitions-'));
afterAll(() => rmSync(folder, { recursive: true }));
const file = (text: string): string => {
  const path = join(folder, 'jobs.yaml');
  writeFileSync(path, text);
  return path;
};

const UNIT =
  'name: unit\nrepository: acme/web\non:\n  push: { branches: [main] }\ntest:\n  - { name: unit, commands: make }\n';
// Nobody listens there: what gets so far is exit status 4.
const NOWHERE = { TEMPORAL_ADDRESS: '127.0.0.1:1' };

describe('what is wrong is told before anything is sent, with status 2', () => {
  test.each<[what: string, text: string, RegExp]>([
    ['nothing', '---\n', /holds no job: write name, repository, on/],
    [
      'a job that nothing starts',
      UNIT.replace(/on:\n.*\n/, 'on: {}\n'),
      /the job in \S+ is invalid\n {2}document 1 \(unit\), line 3: on must have at least one of push/,
    ],
    [
      'a pattern that is none',
      UNIT.replace('[main]', '["[a"]'),
      /line 4: on\.push\.branches\.0 has a "\["/,
    ],
    [
      'two of one name',
      `${UNIT}---\n${UNIT.replace('acme/web', 'Acme/Web')}`,
      /1 of 2 jobs in \S+ are invalid\n {2}document 2 \(unit\), line 8: name is that of document 1, line 1 too: give each job a name of its own/,
    ],
    ['no object', '- a', /must be an object with the fields of a declared job/],
  ])('%s', async (_what, text, expected) => {
    const { status, stderr } = await runCli(['job', 'apply', '-f', file(text)], NOWHERE);
    expect(stderr).toMatch(expected);
    expect(status).toBe(2);
  });

  test('one that is sound gets as far as Temporal, also beside one of its name in another repository', async () => {
    const warned = UNIT.replace(
      'commands: make',
      'commands: make, env: { TOKEN: abc }, volumes: [{ name: s, mountPath: /s, secret: { secretName: s } }]',
    ).replace('test:', 'untrusted: true\ntest:');
    const { status, stderr } = await runCli(
      ['job', 'apply', '-f', file(`${warned}---\n${UNIT.replace('acme/web', 'acme/other')}`)],
      NOWHERE,
    );
    expect(stderr).toMatch(
      /warning: unit: unit: the volume s \(secret\) is not there in the runs of outsiders' changes\n[^]*warning: unit unit: env: what is written for TOKEN lies in Temporal in clear/,
    );
    expect(stderr).not.toContain('abc');
    expect(status).toBe(4);
  });

  test.each([
    [['apply']],
    [['definitions', '--limit', 'all']],
    [['definition']],
    [['pause']],
    [['resume']],
    [['delete']],
  ])('holdfast job %j', async (words) => {
    expect(await runCli(['job', ...words], NOWHERE)).toMatchObject({ status: 2 });
  });
});

test.each<[what: string, document: unknown, accepted: boolean]>([
  [
    'a job',
    {
      name: 'unit',
      repository: 'acme/web',
      on: { push: null },
      test: [{ name: 'unit', commands: 'make' }],
    },
    true,
  ],
  [
    'an unknown trigger',
    {
      name: 'unit',
      repository: 'acme/web',
      on: { release: {} },
      test: [{ name: 'unit', commands: 'make' }],
    },
    false,
  ],
  [
    'no repository',
    { name: 'unit', on: { push: {} }, test: [{ name: 'unit', commands: 'make' }] },
    false,
  ],
  [
    'what it is run for',
    {
      name: 'unit',
      repository: 'acme/web',
      on: { push: {} },
      source: { event: 'push' },
      test: [{ name: 'unit', commands: 'make' }],
    },
    false,
  ],
])('the JSON Schema accepts what the command does: %s', async (_what, document, accepted) => {
  const { stdout } = await runCli(['job', 'schema', '--declared']);
  const accepts = new Ajv2020({ strict: false }).compile(JSON.parse(stdout) as object);
  expect([accepts(document), accepts([document])]).toEqual([accepted, accepted]);
  expect(parseJobDefinition(document, { checkSchedule: scheduleFault }).ok).toBe(accepted);
});

test('one declared job, as people see it', () => {
  const at = '2026-11-22T12:00:00Z';
  const definition = {
    name: 'unit',
    repository: 'acme/web',
    generation: 2,
    checking: false,
    refused: { what: 'declaration', why: 'Invalid input: test is missing', at },
    paused: '',
    maxConcurrency: 1,
    running: [{ group: 'job-group:unit:acme/web:main:pr-7', version: 'a1', since: at }],
    waiting: [
      {
        group: 'job-group:unit:acme/web:main:pr-8',
        version: 'b2',
        since: at,
        untrusted: true as const,
      },
    ],
    ended: [{ group: 'job-group:unit:acme/web:main:push', version: 'c3', since: at, endedAt: at }],
    leftOut: [{ what: 'push of d4 (refs/heads/x)', why: 'branches: x does not match', at }],
  };
  expect(
    definitionLines(
      { id: 'job-definition:acme/web:unit', status: 'RUNNING', definition },
      Date.parse('2026-11-22T12:05:00Z'),
    ),
  ).toEqual([
    'Job:              unit',
    'Repository:       acme/web',
    'Id:               job-definition:acme/web:unit',
    'Status:           running',
    'At once:          1 of 1',
    'Begins nothing:   paused',
    'Refused:          Invalid input: test is missing (2026-11-22T12:00:00Z)',
    '',
    'STATE    VERSION  SINCE  OUTSIDER  RUNS',
    'running  a1       5m     -         job-group:unit:acme/web:main:pr-7',
    'waiting  b2       5m     yes       job-group:unit:acme/web:main:pr-8',
    'over     c3       5m     -         job-group:unit:acme/web:main:push',
    '',
    'LEFT OUT                   AGE  WHY',
    'push of d4 (refs/heads/x)  5m   branches: x does not match',
  ]);
});
