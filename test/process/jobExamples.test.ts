/** The steps of the jobs in docs/jobs.md and examples/jobs/, under the supervisor: each ends at once when it is stopped. */
import { chmodSync, globSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import type { JobInput, StepInput } from '../../core/contract/index.ts';
import { PROJECT, pages } from '../support/markdown.ts';
import { PLACEMENTS, supervisorBundle, SupervisedProcess } from '../support/supervisedProcess.ts';

const bundle = await supervisorBundle();
afterAll(() => bundle.remove());

const [placement = 'bare'] = PLACEMENTS;

const documented = pages()
  .filter(({ path }) => path === 'docs/jobs.md')
  .flatMap(({ blocks }) => blocks)
  .filter(({ language }) => language === 'yaml')
  .map(({ text }) => text);
const examples = globSync('examples/jobs/*.yaml', { cwd: PROJECT }).map((path) =>
  readFileSync(join(PROJECT, path), 'utf8'),
);
const jobs = [...documented, ...examples]
  .flatMap((text) => parseAllDocuments(text).map((document) => document.toJS() as object))
  .filter((raw): raw is JobInput => Object.hasOwn(raw, 'test'));
const steps = jobs.flatMap(({ name: job, pre = [], test: tests, post = [] }) =>
  [...pre, ...tests, ...post].map((step) => [`${job} ${step.name}`, step] as const),
);

/** Everything that the steps run: it says that it is up, and works on and on. */
function program(path: string, text = 'echo up; exec sleep 1000'): void {
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, `#!/bin/sh\n${text}\n`);
  chmodSync(path, 0o755);
}

/** @param grace - of 10 minutes half is longer than a test may take: what ends has ended at the first signal */
function start(
  { commands, command }: StepInput,
  grace: string,
  options: readonly string[] = [],
): SupervisedProcess {
  const folder = mkdtempSync(join(bundle.folder, 'step-'));
  const argv = command ?? ['/bin/sh', '-e', '-c', commands ?? ''];
  for (const [, script = ''] of argv.join('\n').matchAll(/\.\/([\w-]+\.sh)/g))
    program(join(folder, script));
  program(join(folder, 'save-state.sh'), 'echo saved');
  program(join(folder, 'e2e', 'login.sh'));
  for (const name of ['make', 'kubectl']) program(join(folder, 'bin', name));
  program(join(folder, 'shared', 'cluster'), 'a-cluster');
  const env = {
    PATH: `${join(folder, 'bin')}:${process.env['PATH'] ?? ''}`,
    SHARED_DIR: join(folder, 'shared'),
    ARTIFACT_DIR: join(folder, 'artifacts'),
    BUILD_ID: '7',
  };
  const settings = ['--signal-timeout', grace, '--signal-target', 'process', ...options];
  return new SupervisedProcess(
    bundle.file,
    placement,
    [...settings, '--', 'env', '-C', folder, ...argv],
    env,
  ).reading();
}

test('there are examples of jobs with steps', () => {
  expect(steps.length).toBeGreaterThan(5);
});

test.each(steps)('%s ends at once when its job is interrupted', async (_what, step) => {
  const supervised = start(step, '10m');
  await supervised.printed('up');
  supervised.signal('SIGTERM');
  expect(await supervised.status()).not.toBe(0);
  expect(supervised.errors).toContain('Entrypoint received interrupt: terminated');
  expect(supervised.errors).toContain('Process gracefully exited before 10m0s grace period');
  expect(supervised.leftovers()).toEqual([]);
});

// A shell that gets SIGINT waits for the program that it runs, until half the grace is over.
test('each ends within its grace period at its own timeout', async () => {
  await Promise.all(
    steps.map(async ([what, step]) => {
      const supervised = start(step, '30s', ['--timeout', '10s']);
      expect([what, await supervised.status()]).not.toEqual([what, 0]);
      expect(supervised.stdout.toString()).toContain('up');
      expect(supervised.errors).toContain('Process did not finish before 10s timeout');
      expect(supervised.errors).toContain('Process gracefully exited before 30s grace period');
      expect(supervised.leftovers()).toEqual([]);
    }),
  );
}, 180_000);

test.each(['SIGTERM', 'its timeout'])(
  'the trap of the first example saves the state: %s',
  async (how) => {
    const [, e2e] = steps.find(([name]) => name === 'integration e2e') ?? [];
    const supervised = start(
      e2e as StepInput,
      '10m',
      how === 'SIGTERM' ? [] : ['--timeout', '10s'],
    );
    await supervised.printed('up');
    if (how === 'SIGTERM') supervised.signal('SIGTERM');
    await supervised.ended();
    expect(supervised.stdout.toString()).toContain('saved');
    expect(supervised.errors).toContain('Process gracefully exited before 10m0s grace period');
  },
);
