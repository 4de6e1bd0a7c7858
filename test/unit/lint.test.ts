/** The permitted imports between folders (docs/architecture.md): each is enforced by the linter, or by the contents of the workflow bundle. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { bundleWorkflows } from '../../worker/plugin/workflowBundle.ts';
import { PROJECT } from '../support/markdown.ts';

interface Diagnostic {
  readonly message: string;
  readonly help?: string;
  readonly filename: string;
}

/** A file, a line of it, and the linter's message. */
type Case = readonly [file: string, line: string, message: string];
const imports = (...targets: string[]): string[] =>
  targets.map((target) => `export * from '${target}';`);
const forbidden = (file: string, message: string, lines: readonly string[]): Case[] =>
  lines.map((line) => [file, line, message]);

const FORBIDDEN: readonly Case[] = [
  ...forbidden(
    'core/contract/a.ts',
    'core/contract/ is what users read',
    imports('../input/x.ts', '../activities/x.ts', '../../worker/x.ts'),
  ),
  ...forbidden('core/contract/a.ts', 'core/contract/ is what users read', [
    "export type { X } from '../input/x.ts';",
  ]),
  ...forbidden(
    'core/contract/a.ts',
    'core/contract/ is in the workflow bundle',
    imports('zod', 'node:fs'),
  ),
  ...forbidden(
    'core/domain/a.ts',
    'core/domain/ imports core/contract/',
    imports('../input/x.ts', '../activities/x.ts', '../../activities/x.ts'),
  ),
  ...forbidden('core/domain/a.ts', 'core/domain/ imports core/contract/', [
    "export type { X } from '../input/x.ts';",
  ]),
  ...forbidden(
    'core/domain/a.ts',
    'core/domain/ is in the workflow bundle',
    imports('zod', 'node:fs'),
  ),
  ...forbidden(
    'core/activities/a.ts',
    'of core/input/ it takes types alone',
    imports('../input/x.ts'),
  ),
  ...forbidden(
    'core/activities/a.ts',
    'core/activities/ is in the workflow bundle',
    imports('zod'),
  ),
  ...forbidden(
    'core/activities/a.ts',
    'core/ imports nothing else of ours',
    imports('../../workflows/x.ts'),
  ),
  ...forbidden(
    'core/sweep/a.ts',
    'core/sweep/ imports core/contract/',
    imports('../activities/x.ts', '../../activities/x.ts'),
  ),
  ...forbidden('core/sweep/a.ts', 'of core/input/ it takes types alone', imports('../input/x.ts')),
  ...forbidden(
    'core/sweep/a.ts',
    'core/sweep/ is pure',
    imports('zod', 'node:fs', '@temporalio/client'),
  ),
  ...forbidden(
    'core/why/a.ts',
    'core/why/ imports core/contract/',
    imports('../input/x.ts', '../../activities/x.ts'),
  ),
  ...forbidden(
    'core/why/a.ts',
    'core/why/ is pure',
    imports('zod', 'node:fs', '@temporalio/client'),
  ),
  ...forbidden('core/input/a.ts', 'core/ is pure', imports('node:fs', '@temporalio/client')),
  ...forbidden(
    'core/input/a.ts',
    'core/activities/ reads core/input/',
    imports('../activities/x.ts'),
  ),
  ...forbidden(
    'core/input/a.ts',
    'core/ imports nothing else of ours',
    imports('../../activities/x.ts'),
  ),
  ...forbidden(
    'workflows/runner/a.ts',
    'workflows/ imports core/',
    imports(
      '../../activities/x.ts',
      '../../worker/x.ts',
      '../../cli/x.ts',
      '../../supervisor/x.ts',
      '../../uploader/x.ts',
      '../../tools/lab/x.ts',
      '../../demo/x.ts',
      '../../test/x.ts',
    ),
  ),
  ...forbidden('workflows/runner/a.ts', 'workflows/ imports core/', [
    "export type { X } from '../../activities/x.ts';",
  ]),
  ...forbidden(
    'workflows/runner/a.ts',
    'of core/input/ it takes types alone',
    imports('../../core/input/x.ts', 'zod'),
  ),
  ...forbidden('workflows/runner/a.ts', 'no Node built-ins', imports('node:crypto')),
  ...forbidden(
    'workflows/runner/a.ts',
    'talks to the world through activities',
    imports('@temporalio/client', '@kubernetes/client-node'),
  ),
  ...forbidden('workflows/runnerSet/a.ts', 'a set goes by the time', [
    'export const now = Date.now();',
    'export const now = new Date();',
    'export const now = globalThis.Date.now();',
  ]),
  ...forbidden(
    'activities/runnerSet/a.ts',
    'activities/ imports core/',
    imports(
      '../../workflows/x.ts',
      '../../worker/x.ts',
      '../../cli/x.ts',
      '../../supervisor/x.ts',
      '../../uploader/x.ts',
      '../../tools/lab/x.ts',
      '../../demo/x.ts',
      '../../test/x.ts',
    ),
  ),
  ...forbidden(
    'worker/webhook/a.ts',
    'worker/ bundles workflows/',
    imports('../../workflows/x.ts'),
  ),
  ...forbidden(
    'worker/webhook/a.ts',
    'worker/ imports core/ and activities/',
    imports(
      '../../cli/x.ts',
      '../../supervisor/x.ts',
      '../../uploader/x.ts',
      '../../tools/lab/x.ts',
      '../../demo/x.ts',
      '../../test/x.ts',
    ),
  ),
  ...forbidden(
    'worker/settings/a.ts',
    'worker/settings/ is read by the rest',
    imports('../x.ts', '../webhook/x.ts'),
  ),
  ...forbidden(
    'worker/settings/a.ts',
    'worker/ imports core/ and activities/',
    imports('../../test/x.ts'),
  ),
  ...forbidden('cli/set/a.ts', 'cli/ starts workflows', imports('../../workflows/x.ts')),
  ...forbidden(
    'cli/set/a.ts',
    'cli/ imports core/, activities/ and worker/',
    imports('../../supervisor/x.ts', '../../tools/lab/x.ts', '../../demo/x.ts', '../../test/x.ts'),
  ),
  ...forbidden(
    'supervisor/process/a.ts',
    'supervisor/ runs alone',
    imports('../../core/input/x.ts', '../../worker/x.ts', '../../cli/x.ts'),
  ),
  ...forbidden(
    'supervisor/a.ts',
    'supervisor/ runs alone',
    imports(
      '../core/x.ts',
      '../core/input/x.ts',
      '../core/contract/x.ts',
      '../worker/x.ts',
      '../uploader/x.ts',
      '../tools/lab/x.ts',
    ),
  ),
  ...forbidden(
    'uploader/a.ts',
    'uploader/ runs alone',
    imports(
      '../core/x.ts',
      '../core/input/x.ts',
      '../core/contract/x.ts',
      '../activities/compute/x.ts',
      '../activities/ports/compute.ts',
      '../worker/x.ts',
      '../supervisor/x.ts',
      '../tools/lab/x.ts',
    ),
  ),
  ...forbidden(
    'tools/simulator/runner/a.ts',
    'tools/simulator/ stands in for GitHub',
    imports(
      '../../../core/x.ts',
      '../../../activities/x.ts',
      '../../../worker/x.ts',
      '../../lab/x.ts',
      '../../../test/x.ts',
    ),
  ),
  ...forbidden(
    'tools/lab/a.ts',
    'tools/lab/ brings up',
    imports(
      '../../core/domain/x.ts',
      '../../activities/x.ts',
      '../../worker/x.ts',
      '../../cli/x.ts',
      '../../supervisor/x.ts',
      '../simulator/x.ts',
    ),
  ),
  ...forbidden('tools/bench/a.ts', 'what is for tests alone', imports('../../test/x.ts')),
  ...forbidden('tools/chaos/a.ts', 'what is for tests alone', imports('../../test/x.ts')),
  ...forbidden('tools/fuzz/a.ts', 'what is for tests alone', imports('../../test/x.ts')),
  ...forbidden('tools/supplyChain/a.ts', 'what is for tests alone', imports('../../test/x.ts')),
  ...forbidden('demo/a.ts', 'what is for tests alone', imports('../test/x.ts')),
];

/** Permitted lines that are similar to forbidden ones. */
const ALLOWED: readonly (readonly [file: string, line: string])[] = [
  ['core/contract/a.ts', "export * from '../domain/x.ts';"],
  ['core/domain/a.ts', "export * from '../contract/x.ts';"],
  ['core/activities/a.ts', "export type { X } from '../input/x.ts';"],
  ['core/sweep/a.ts', "export type { X } from '../input/x.ts';"],
  ['core/sweep/a.ts', "export * from '../domain/x.ts';"],
  ['core/why/a.ts', "export * from '../activities/x.ts';"],
  ['core/input/a.ts', "export * from 'zod';"],
  ['workflows/runner/a.ts', "export type { X } from '../../core/input/x.ts';"],
  ['workflows/runner/a.ts', 'export const now = Date.now();'],
  ['workflows/runnerSet/a.ts', 'export type Now = Date;'],
  ['activities/runnerSet/a.ts', "export * from '../../core/input/x.ts';"],
  ['worker/webhook/a.ts', "export * from '../../activities/x.ts';"],
  ['cli/set/a.ts', "export * from '../../worker/x.ts';"],
  ['workflows/runner/a.ts', "export * from '../../core/activities/x.ts';"],
  ['supervisor/process/a.ts', "export * from '../signals/x.ts';"],
  ['supervisor/process/a.ts', "export * from '../../core/domain/x.ts';"],
  ['supervisor/a.ts', "export * from './process/x.ts';"],
  ['supervisor/a.ts', "export * from '../core/domain/x.ts';"],
  ['uploader/a.ts', "export * from '../core/domain/x.ts';"],
  ['uploader/a.ts', "export * from '../activities/artifacts/x.ts';"],
  ['tools/lab/a.ts', "export * from '../../core/contract/x.ts';"],
  ['tools/bench/a.ts', "export * from '../../worker/x.ts';"],
];

/** Every line in a separate file. */
const FILES = [...FORBIDDEN, ...ALLOWED].map(([file, line], index) => ({
  path: join(dirname(file), `case${index}.ts`),
  text: `${line}\n`,
}));
const CIRCLE = [
  {
    path: 'worker/circle/one.ts',
    text: "import type { Two } from './two.ts';\nexport type One = Two | 1;\n",
  },
  {
    path: 'worker/circle/two.ts',
    text: "import type { One } from './one.ts';\nexport type Two = One | 2;\n",
  },
];

/** The linter's messages for these files, by path. */
function lint(files: readonly { path: string; text: string }[]): Map<string, Diagnostic[]> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-lint-'));
  try {
    copyFileSync(join(PROJECT, '.oxlintrc.json'), join(folder, '.oxlintrc.json'));
    for (const { path, text } of files) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
    }
    const { stdout, stderr } = spawnSync(
      process.execPath,
      [join(PROJECT, 'node_modules/oxlint/bin/oxlint'), '--format', 'json', '.'],
      { cwd: folder, encoding: 'utf8' },
    );
    if (!stdout.startsWith('{')) throw new Error(`oxlint did not run: ${stdout}${stderr}`);
    return Map.groupBy(
      (JSON.parse(stdout) as { diagnostics: Diagnostic[] }).diagnostics,
      ({ filename }) => filename,
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe('the linter', () => {
  let found: Map<string, Diagnostic[]>;
  beforeAll(() => {
    found = lint([...FILES, ...CIRCLE]);
  });
  const messagesOf = (index: number): string[] =>
    (found.get(FILES[index]?.path ?? '') ?? []).map(
      ({ message, help = '' }) => `${message} ${help}`,
    );

  test.each(FORBIDDEN.map(([file, line, message], index) => ({ index, file, line, message })))(
    'in $file rejects: $line',
    ({ index, message }) => {
      expect(messagesOf(index)).toEqual([expect.stringContaining(message)]);
    },
  );

  test.each(
    ALLOWED.map(([file, line], index) => ({ index: FORBIDDEN.length + index, file, line })),
  )('in $file accepts: $line', ({ index }) => {
    expect(messagesOf(index)).toEqual([]);
  });

  test('has no rule between folders that is not tested here', () => {
    const messages = [
      ...readFileSync(join(PROJECT, '.oxlintrc.json'), 'utf8').matchAll(/"message": "([^"]+)"/g),
    ].map(([, message = '']) => message);
    expect(messages.length).toBeGreaterThan(15);
    expect(
      messages.filter((message) => !FORBIDDEN.some(([, , expected]) => message.includes(expected))),
    ).toEqual([]);
  });

  test('rejects a cycle of imports, even of types only', () => {
    expect(CIRCLE.map(({ path }) => found.get(path)?.map(({ message }) => message))).toEqual([
      ['Dependency cycle detected'],
      ['Dependency cycle detected'],
    ]);
  });
});

test('the workflow bundle contains workflows/, core/ without core/input/, and the Temporal SDK', async () => {
  const { code } = await bundleWorkflows();
  const [, base64 = ''] =
    /sourceMappingURL=data:[^,]*,(\S+)/.exec(code.slice(code.lastIndexOf('sourceMappingURL'))) ??
    [];
  const { sources } = JSON.parse(Buffer.from(base64, 'base64').toString()) as { sources: string[] };
  const ours = sources
    .filter((path) => path.startsWith(PROJECT) && !path.includes('/node_modules/'))
    .map((path) => path.slice(PROJECT.length).replace(/^\//, ''));
  const packages = new Set(
    sources.flatMap((path) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []),
  );
  expect(ours).toEqual(
    expect.arrayContaining([
      'workflows/index.ts',
      'workflows/runner/runner.ts',
      'core/contract/index.ts',
    ]),
  );
  expect(
    ours.filter((path) => !/^(workflows|core\/(contract|domain|activities))\b/.test(path)),
  ).toEqual([]);
  expect([...packages].filter((name) => !name.startsWith('@temporalio/')).toSorted()).toEqual([
    'long',
    'ms',
    'nexus-rpc',
  ]);
});
