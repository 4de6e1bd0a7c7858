import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import { BINARIES } from '../../tools/lab/versions.ts';
import { CHILD_ENV_PREFIX } from '../../supervisor/settings/settings.ts';
import { scheduleError } from '../../activities/runnerSet/schedules.ts';
import { admitSets } from '../../cli/set/setAdmission.ts';
import { readSetDocuments } from '../../cli/set/setDocuments.ts';
import { inputOf, type RunnerSetResource } from '../../worker/controller/runnerSetResource.ts';
import { settings } from '../../worker/settings/settings.ts';
import * as contract from '../../core/contract/index.ts';
import { jobSchema } from '../../core/input/jobSchema.ts';
import { parseJobInput } from '../../core/input/job.ts';
import { MAX_STEPS } from '../../core/input/jobChecks.ts';
import { parseRunnerInput } from '../../core/input/runner.ts';
import { parseSetCommandInput } from '../../core/input/setCommand.ts';
import { parseSweepInput } from '../../core/input/sweep.ts';
import { RUNNER_SET_WORKFLOW } from '../../core/contract/index.ts';
import { MAX_RUNNERS } from '../../core/input/runnerSetSchema.ts';
import { parseRunnerSetInput } from '../../core/input/runnerSet.ts';
import { ROWS } from '../../workflows/runner/unregisterTable.ts';
import { MAX_ACTIVE_JOBS } from '../../workflows/runnerSet/jobs.ts';
import { MAX_SET_NAME } from '../../core/domain/setRunnerNames.ts';
import { parseDuration } from '../../core/domain/duration.ts';
import { runCli } from '../support/cli.ts';
import { PROJECT, pages, resolveLink, type Page } from '../support/markdown.ts';

const read = (path: string): string => readFileSync(join(PROJECT, path), 'utf8');
const parseSet = (raw: unknown): ReturnType<typeof parseRunnerSetInput> =>
  parseRunnerSetInput(raw, { hash: () => '', checkSchedule: scheduleError });
/** The HOLDFAST_ variables that a text names, without prefixes of names. */
const variables = (text: string): string[] =>
  [...text.matchAll(/\b(HOLDFAST_[A-Z_]*[A-Z])\b(?![_<*…])/g)].map(([, name = '']) => name);
const PAGES = pages();
const each = PAGES.map((page) => [page.path, page] as const);
const matches = (page: Page, pattern: RegExp): string[] =>
  page.code.flatMap((code) => [...code.matchAll(pattern)].map((match) => match[1] ?? ''));

test('docs/troubleshooting.md explains each cause of waiting in one row', () => {
  const [, section = ''] =
    /^## Why a job waits\n([^]*?)^## /m.exec(read('docs/troubleshooting.md')) ?? [];
  const listed = [...section.matchAll(/^\| (`[a-z_]+`(?:, `[a-z_]+`)*) \|/gm)].flatMap(
    ([, causes = '']) => causes.replaceAll('`', '').split(', '),
  );
  expect(listed.toSorted()).toEqual([...contract.WAIT_CAUSES].toSorted());
});

test('the pages are found', () => {
  expect(PAGES.map(({ path }) => path)).toEqual(
    expect.arrayContaining([
      'README.md',
      'CHANGELOG.md',
      'CONTRIBUTING.md',
      'docs/lifecycle.md',
      'tools/simulator/README.md',
    ]),
  );
});

describe.each(each)('%s', (path, page) => {
  test('every relative link has an existing target', () => {
    const dead = page.links
      .filter((link) => !/^(https?|mailto):/.test(link))
      .filter((link) => {
        const { file, anchor } = resolveLink(path, link);
        if (!existsSync(join(PROJECT, file))) return true;
        return (
          anchor !== '' &&
          PAGES.find((other) => other.path === file)?.anchors.includes(anchor) !== true
        );
      });
    expect(dead).toEqual([]);
  });

  test('every npm script that it names exists', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    expect(
      matches(page, /npm run ([\w:-]+)/g).filter((name) => scripts[name] === undefined),
    ).toEqual([]);
  });

  test('every HOLDFAST_ variable that it names exists', () => {
    const known = new Set<string>([
      ...Object.keys(settings.shape),
      ...Object.values(BINARIES).map(({ env }) => env),
    ]);
    // Variables that the worker does not read, with the file that reads them.
    const others: Record<string, string> = {
      HOLDFAST_TEMPORAL_UI_URL: 'cli/shared/session.ts',
      HOLDFAST_REGISTRATION_DIR: 'activities/compute/kubernetes/registrationContainer.ts',
      HOLDFAST_REQUIRE: 'test/support/lab.ts',
      HOLDFAST_TEST_BUSY_RUNNERS: 'test/node/chart.test.ts',
      HOLDFAST_TEST_RUNNERS: 'test/nightly/fullSet.test.ts',
      HOLDFAST_TEST_SDK: 'test/temporal/package.test.ts',
      HOLDFAST_TEST_TEMPORAL: 'test/support/lab.ts',
      HOLDFAST_TEST_CACHED_WORKFLOWS: 'test/support/holdfastWorld.ts',
      HOLDFAST_TEMPORAL_WORKER_CONTROLLER_BIN: 'test/support/workerController.ts',
      HOLDFAST_TEMPORAL_WORKER_CONTROLLER_CRDS: 'test/support/workerController.ts',
      HOLDFAST_TEST_WORKERS: 'test/support/clusterWorld.ts',
      HOLDFAST_LAB_KEEP: 'test/support/globalTeardown.ts',
      HOLDFAST_BENCH_DIR: 'tools/bench/main.ts',
      HOLDFAST_BENCH_WINDOW: 'tools/bench/benchmarks/idleRunners.ts',
      HOLDFAST_BENCH_RATES: 'tools/bench/benchmarks/queue.ts',
      HOLDFAST_BENCH_RESYNC: 'tools/bench/benchmarks/idleRunners.ts',
      HOLDFAST_LAB_DIR: 'tools/lab/main.ts',
    };
    for (const [name, file] of Object.entries(others))
      if (read(file).includes(name)) known.add(name);
    for (const name of variables(read('supervisor/settings/settings.ts'))) known.add(name);
    expect(
      variables(page.text).filter((name) => !known.has(name) && !name.startsWith(CHILD_ENV_PREFIX)),
    ).toEqual([]);
  });

  test('its shell, YAML and JSON blocks are valid', () => {
    for (const { language, text } of page.blocks) {
      const read: Record<string, () => unknown> = {
        sh: () => execFileSync('bash', ['-n'], { input: text, stdio: 'pipe' }),
        yaml: () => {
          for (const { errors } of parseAllDocuments(text)) if (errors[0]) throw errors[0];
        },
        json: () => JSON.parse(text) as unknown,
      };
      expect(read[language] ?? (() => undefined)).not.toThrow();
    }
  });

  test('its temporal commands match the contract', () => {
    const commands = (...verbs: readonly string[]): string[] =>
      page.code.filter((line) => verbs.includes(/^temporal workflow (\w+)/.exec(line)?.[1] ?? ''));
    const ofRunner = {
      signal: ['cancel', 'jobEvent', 'podState', 'replaceIdle'],
      update: ['drain', 'extendDeadline'],
      query: ['status'],
    };
    const ofSet = { signal: ['jobEvents'], update: [], query: ['status', 'declaration', 'jobs'] };
    const ofGroup = { signal: ['revision'], update: [], query: ['status'] };
    const parsers: Record<string, (raw: unknown) => object> = {
      [contract.RUNNER_WORKFLOW]: (raw) => parseRunnerInput(raw),
      [RUNNER_SET_WORKFLOW]: parseSet,
      [contract.SET_COMMAND_WORKFLOW]: parseSetCommandInput,
      [contract.SWEEP_WORKFLOW]: parseSweepInput,
      [contract.JOB_WORKFLOW]: (raw) => parseJobInput(raw, { workflowId: 'job-x' }),
    };
    for (const line of commands('start', 'execute').filter((each) => each.includes(' --'))) {
      const [, input = 'none'] = /--input '([^']*)'/.exec(line) ?? [];
      expect(parsers[/--type (\w+)/.exec(line)?.[1] ?? '']?.(JSON.parse(input))).toMatchObject({
        ok: true,
      });
    }
    const verbs = ['signal', 'update', 'query'] as const;
    const unknown = verbs.flatMap((verb) =>
      commands(verb).filter((line) => {
        const name = (/--signal-name (\w+)/.exec(line) ?? /--(?:name|type) (\w+)/.exec(line))?.[1];
        const ofOther = line.includes('--workflow-id job-group:') ? ofGroup : ofRunner;
        const messages: Record<typeof verb, readonly string[]> = line.includes('--workflow-id set-')
          ? ofSet
          : ofOther;
        return name !== undefined && !messages[verb].includes(name);
      }),
    );
    expect(unknown).toEqual([]);
    const attributes = Object.values(contract.SEARCH_ATTRIBUTES).map((attribute) => attribute.name);
    expect(
      matches(page, /--name (Runner\w+)/g).filter((name) => !attributes.includes(name)),
    ).toEqual([]);
  });
});

describe('the commands in the documentation', () => {
  const lines = [
    ...new Set(
      PAGES.flatMap(({ code }) => code).flatMap((code) =>
        [...code.matchAll(/(?:^|npm run )holdfast (?:-- )?([a-z].*)$/g)].map(
          ([, rest = '']) => rest,
        ),
      ),
    ),
  ]
    // A separate program, which prints to this process' output.
    .filter((line) => !line.startsWith('demo'));
  const helps = new Map<string, Promise<Awaited<ReturnType<typeof runCli>>>>();
  const helpOf = (words: string[]): ReturnType<typeof runCli> => {
    const key = words.join(' ');
    const known = helps.get(key) ?? runCli([...words, '--help']);
    helps.set(key, known);
    return known;
  };

  test('are found', () => {
    expect(lines.length).toBeGreaterThan(10);
  });

  test.each(lines)('holdfast %s', async (line) => {
    const words = line.split(/\s+/);
    const command = words
      .slice(0, ['runner', 'set', 'job', 'migrate'].includes(words[0] ?? '') ? 2 : 1)
      .filter((word) => word !== '…' && !word.includes('|'));
    const { status, stdout } = await helpOf(command);
    expect(status).toBe(0);
    expect(stdout).toMatch(new RegExp(`^Usage: holdfast ${command.join(' ')}`));
    for (const option of words.filter((word) => /^--?[a-z]/.test(word)))
      expect(stdout).toMatch(new RegExp(`(^|[\\s,])${option}[\\s,]`));
  });
});

test('the contract documents the default that each duration has', () => {
  const source = ['runnerInput', 'runnerSetInput', 'jobInput', 'deregistration', 'sweep']
    .map((name) => read(`core/contract/${name}.ts`))
    .join('\n');
  const rows = [
    ...source.matchAll(/@default (?:"(\w+)"|off|none)\s+\*\/\n {2}(\w+): (?:'(\w+)'|undefined),/g),
  ];
  const tables = [
    contract.RUNNER_TIMEOUTS,
    contract.STOP_TIMEOUTS,
    contract.RUNNER_INTERVALS,
    contract.JOB_TIMEOUTS,
    contract.STEP_TIMEOUTS,
    contract.SET_DELAYS,
    contract.SET_INTERVALS,
    contract.DEREGISTRATION_TIMEOUTS,
    contract.SWEEP_LIMITS,
  ];
  expect(rows.map(([, , field = '']) => field).toSorted()).toEqual(
    tables.flatMap((table) => Object.keys(table)).toSorted(),
  );
  expect(rows.filter(([, documented, , value]) => documented !== value)).toEqual([]);
});

describe('docs/lifecycle.md', () => {
  const page = PAGES.find(({ path }) => path === 'docs/lifecycle.md') as Page;

  test('names every phase and every cause that a verdict has today', () => {
    const sources = [
      'workflows/runner/verdict.ts',
      'workflows/runner/runnerLoss.ts',
      'workflows/runner/bringUp.ts',
      'workflows/runner/startupDecision.ts',
      'core/domain/cancellation.ts',
      'workflows/runner/serveJobs.ts',
      'workflows/runner/runner.ts',
      'workflows/runner/unregister.ts',
    ]
      .map(read)
      .join('\n');
    const phases: contract.RunnerPhase[] = [
      'Requested',
      'Provisioning',
      'Registering',
      'Idle',
      'Busy',
      'Draining',
      'Unregistering',
      'TearingDown',
      'Gone',
    ];
    for (const phase of phases) expect(page.text).toMatch(new RegExp(`^\\| ${phase} \\|`, 'm'));
    // `superseded` is reserved for runners that a set replaces.
    for (const cause of contract.RUNNER_CAUSES.filter((each) => each !== 'superseded')) {
      expect([cause, sources.includes(`'${cause}'`), page.text.includes(cause)]).toEqual([
        cause,
        true,
        true,
      ]);
    }
  });

  test('gives the defaults of the code', () => {
    const given = [
      ...page.text.matchAll(/`(timeouts|intervals|stop)\.(\w+)`(?: \(|, )?(\d+ (?:ms|s|m|h)\b)?/g),
    ];
    expect(given.length).toBeGreaterThan(10);
    const tables = {
      timeouts: contract.RUNNER_TIMEOUTS,
      stop: contract.STOP_TIMEOUTS,
      intervals: contract.RUNNER_INTERVALS,
    };
    for (const [text, group, field = '', value] of given) {
      const defaults: Readonly<Record<string, string | undefined>> =
        tables[group as keyof typeof tables];
      if (/`(timeouts\.idle|stop\.(drainTimeout|gracePeriod))`/.test(text)) continue; // off by default
      expect([field, defaults[field]]).toEqual([field, expect.any(String)]);
      const written = value?.replace(' ', '') ?? defaults[field] ?? '';
      expect([field, parseDuration(written)]).toEqual([
        field,
        parseDuration(defaults[field] ?? ''),
      ]);
    }
  });

  test('has the rows of the unregistration table, and no others', () => {
    const table = page.text.slice(
      page.text.indexOf('## Unregistering'),
      page.text.indexOf('## Cancelling'),
    );
    const documented = new Set(
      [...table.matchAll(/^\| (\d{1,2}[a-d]?|3–11) \|/gm)].map(([, row = '']) =>
        row.replace('–', '-'),
      ),
    );
    // A test of the table shows that it can return each of these.
    expect([...documented].toSorted()).toEqual([...ROWS].toSorted());
  });
});

test('docs/testing.md lists every folder of test/, with its project', async () => {
  const { default: jest } = (await import(join(PROJECT, 'jest.config.js'))) as {
    default: { projects: { displayName: string; roots: string[] }[] };
  };
  const projectOf = (folder: string): string =>
    jest.projects.find(
      ({ displayName, roots }) =>
        displayName !== 'slice' && roots.includes(`<rootDir>/test/${folder}`),
    )?.displayName ?? '–';
  const folders = readdirSync(join(PROJECT, 'test'), { withFileTypes: true }).filter((entry) =>
    entry.isDirectory(),
  );
  const rows = [...read('docs/testing.md').matchAll(/^\| `test\/(\w+)\/` \| (\S+) \|/gm)].map(
    ([, folder = '', project = '']) => `${folder} ${project}`,
  );
  expect(rows.toSorted()).toEqual(
    folders.map(({ name }) => `${name} ${projectOf(name)}`).toSorted(),
  );
});

describe('docs/runner-sets.md', () => {
  const page = PAGES.find(({ path }) => path === 'docs/runner-sets.md') as Page;
  const yaml = page.blocks.filter(({ language }) => language === 'yaml').map(({ text }) => text);

  test.each(yaml.map((text, index) => [index + 1, text] as const))(
    'the sets of its YAML block %i can be applied',
    (_number, text) => {
      const [first] = parseAllDocuments(text).map(
        (document) => document.toJS() as RunnerSetResource & { kind?: string },
      );
      const sets = first?.kind === 'RunnerSet' ? JSON.stringify(inputOf(first)) : text;
      expect(admitSets(readSetDocuments(sets, 'f'), 'f')).not.toEqual([]);
    },
  );

  test('gives every field, and the defaults of the code', () => {
    const table = page.text.slice(
      page.text.indexOf('## The fields of a set'),
      page.text.indexOf('## Examples'),
    );
    const rows = [...table.matchAll(/^\| (`.*?`) \| (.*?) \|/gm)].map(
      ([, names = '', value = '']) =>
        [names.replaceAll('`', ''), value.replaceAll('`', '')] as const,
    );
    // The fields that the parser knows: it reports all others.
    const fields = new Set(
      rows.flatMap(([names]) => names.split(', ')).map((field) => field.split('.')[0] ?? ''),
    );
    const parsed = parseSet(
      Object.fromEntries([...fields, 'nonsense'].map((field) => [field, undefined])),
    );
    expect(
      parsed.ok
        ? []
        : parsed.errors
            .filter(({ message }) => message.includes('not a known field'))
            .map(({ field }) => field),
    ).toEqual(['nonsense']);
    const minimal = parseSet({ name: 'linux', replicas: 1, template: { organization: 'acme' } });
    expect(rows).toEqual(
      expect.arrayContaining([
        ...Object.entries(contract.SET_DELAYS),
        ['rollout.maxSurge', String(minimal.ok && minimal.spec.maxSurge)],
      ]),
    );
    for (const documented of [
      'name',
      'template',
      'replicas',
      'minIdle',
      'schedules',
      'scaleDownDelay',
      'recreationGuard',
      'rollout',
      'holds',
      'paused',
      'queueCheck',
      'intervals',
    ])
      expect([...fields]).toContain(documented);
  });

  test('gives the limits of the code', () => {
    for (const limit of [
      `at most ${MAX_SET_NAME} letters`,
      `${MAX_RUNNERS.toLocaleString('en')} runners`,
      `${MAX_ACTIVE_JOBS.toLocaleString('en')} jobs`,
    ])
      expect(page.text).toContain(limit);
  });

  test('names existing metrics', () => {
    const sources = [
      'worker/webhook/setMetrics.ts',
      'worker/process/metrics.ts',
      'worker/process/scaleSetMetrics.ts',
    ]
      .map(read)
      .join('\n');
    const named = [...new Set(page.text.match(/\bholdfast_[a-z_]+/g))];
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((name) => !sources.includes(name))).toEqual([]);
  });
});

describe('docs/jobs.md', () => {
  const page = PAGES.find(({ path }) => path === 'docs/jobs.md') as Page;
  const part = (from: string, to: string): string =>
    page.text.slice(page.text.indexOf(from), page.text.indexOf(to));
  const fields = (text: string): (readonly [string, string])[] =>
    [...text.matchAll(/^\| (`.*?`) \| (.*?) \|/gm)].flatMap(([, names = '', value = '']) =>
      names
        .split(', ')
        .map((name) => [name.replaceAll('`', ''), value.replaceAll('`', '')] as const),
    );

  const documents = page.blocks
    .filter(({ language }) => language === 'yaml')
    .flatMap(({ text }) => parseAllDocuments(text).map((document) => document.toJS() as object));

  test('its job is valid', () => {
    const parsed = documents
      .filter((raw) => !Object.hasOwn(raw, 'on'))
      .map((raw) => parseJobInput(raw, { workflowId: 'job-x' }));
    expect(parsed).not.toEqual([]);
    expect(parsed).toEqual(parsed.map(() => expect.objectContaining({ ok: true })));
  });

  test('its workflow of GitHub Actions uses existing commands and options', async () => {
    const [workflow] = documents.filter((raw) => Object.hasOwn(raw, 'on')) as {
      jobs: Record<string, { steps: { run?: string }[] }>;
    }[];
    const lines = Object.values(workflow?.jobs ?? {})
      .flatMap(({ steps }) => steps)
      .flatMap(({ run }) => [...(run ?? '').matchAll(/\bholdfast .+/g)].map(([line]) => line));
    expect(lines.map((line) => line.split(' ').slice(0, 3).join(' '))).toEqual([
      'holdfast job run',
      'holdfast job cancel',
      'holdfast job cancel',
    ]);
    for (const line of lines) {
      const { stdout } = await runCli([...line.split(' ').slice(1, 3), '--help'], {});
      for (const [option] of line.matchAll(/--[a-z-]+/g)) expect(stdout).toContain(option);
    }
  });

  test.each([
    [
      '## The fields of a job',
      '## The fields of a step',
      Object.keys(jobSchema.shape),
      contract.JOB_TIMEOUTS,
    ],
    [
      '## The fields of a step',
      '## What happens next',
      Object.keys(jobSchema.shape.post.unwrap().element.shape),
      contract.STEP_TIMEOUTS,
    ],
  ])('%s: every field, and the defaults of the code', (from, to, known, defaults) => {
    const documented = fields(part(from, to));
    expect(documented.map(([name]) => name.split('.')[0] ?? '').toSorted()).toEqual(
      known.toSorted(),
    );
    expect(documented).toEqual(expect.arrayContaining(Object.entries(defaults)));
  });

  test('gives the limits of the code', () => {
    expect(page.text).toContain(`at most ${MAX_STEPS} steps`);
  });
});

test('docs/security.md names existing tests, and every attack', () => {
  const text = read('docs/security.md');
  const named = new Set([...text.matchAll(/`(test\/[\w./]+\.test\.ts)`/g)].map(([, path]) => path));
  expect(named.size).toBeGreaterThan(20);
  for (const path of named)
    expect([path, existsSync(join(PROJECT, path ?? ''))]).toEqual([path, true]);
  const attacks = readdirSync(join(PROJECT, 'test/attacks')).map((name) => `test/attacks/${name}`);
  expect(attacks.filter((path) => !named.has(path))).toEqual([]);
});
