/** The public names: every name and type of core/contract/, from the package's root and from its own entry point. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { PLUGIN } from '../../tools/release/packages.ts';
import { PROJECT } from '../support/markdown.ts';

const CONTRACT = join(PROJECT, 'core/contract');
const { exports: entries = {} } = PLUGIN;
const names = readdirSync(CONTRACT).flatMap((file) =>
  [
    ...readFileSync(join(CONTRACT, file), 'utf8').matchAll(
      /^export (?:declare )?(?:const|function|class|interface|type|enum) (\w+)/gm,
    ),
  ].map(([, name = '']) => name),
);

test.each(['.', './contract'])('the entry point "%s" exports all of them', (entry) => {
  expect(names).toEqual(
    expect.arrayContaining([
      'RUNNER_WORKFLOW',
      'RunnerInput',
      'RunnerSetInput',
      'RunnerSetStatus',
      'jobEventsSignal',
      'DeregistrationInput',
    ]),
  );
  const source = join(
    PROJECT,
    (entries[entry] ?? '').replace(/^\.\/dist\//, '').replace(/\.js$/, '.ts'),
  );
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-names-'));
  try {
    writeFileSync(
      join(folder, 'names.ts'),
      `export type { ${names.join(', ')} } from '${source}';\n`,
    );
    const compilerOptions = {
      rewriteRelativeImportExtensions: false,
      typeRoots: [join(PROJECT, 'node_modules/@types')],
    };
    writeFileSync(
      join(folder, 'tsconfig.json'),
      JSON.stringify({
        extends: join(PROJECT, 'tsconfig.json'),
        compilerOptions,
        files: ['names.ts'],
        include: [],
      }),
    );
    const { stdout } = spawnSync(
      process.execPath,
      [join(PROJECT, 'node_modules/typescript/bin/tsc'), '-p', folder],
      { encoding: 'utf8' },
    );
    expect(stdout).toBe('');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
