/** The tables' own tests, a test for each row: do they catch a mutant that makes no difference in the world of the model? */
import { execFile } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify, stripVTControlCharacters } from 'node:util';
import type { Tables } from './mind.ts';
import type { Mutant } from './mutants.ts';
import { once } from './numbers.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** What is no source, and what a copy must not share. */
const LEFT_OUT = new Set(['node_modules', '.git', '.holdfast', 'dist', 'coverage']);

/** A table that leads nowhere may keep its tests busy for ever. They take some seconds. */
const WITHIN_MS = 120_000;

/** By table: the tests that go through it row by row. */
const TESTS: Readonly<Record<keyof Tables, readonly string[]>> = {
  unregisterTable: ['test/unit/workflows/runner.unregisterTable.test.ts'],
  unregisterFacts: ['test/unit/workflows/runner.unregisterTable.test.ts'],
  onlineDecision: ['test/unit/workflows/runner.onlineDecision.test.ts'],
  verdicts: [
    'test/unit/workflows/runner.verdict.test.ts',
    'test/unit/workflows/runner.verdict.words.test.ts',
    'test/unit/workflows/runner.jobEvents.test.ts',
    'test/unit/viewOfPod.exit.test.ts',
  ],
  cancellation: ['test/unit/core/cancellation.test.ts'],
};

interface JestResults {
  readonly testResults: readonly {
    readonly message: string;
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

/** A copy of the project, in which one file at a time is another. */
export class RowTests {
  readonly #copy = mkdtempSync(join(tmpdir(), 'holdfast-mutants-'));
  /** Tables whose tests pass as they are. */
  readonly #sound = new Map<keyof Tables, Promise<void>>();

  constructor() {
    cpSync(ROOT, this.#copy, { recursive: true, filter: (path) => !LEFT_OUT.has(basename(path)) });
    symlinkSync(join(ROOT, 'node_modules'), join(this.#copy, 'node_modules'));
  }

  /** @returns the name of a test that fails with the mutant, if there is one @throws Error when the tests fail without it as well */
  async failing({
    table,
    file,
    text,
  }: Pick<Mutant, 'table' | 'file' | 'text'>): Promise<string | undefined> {
    await once(this.#sound, table, async () => {
      const failed = await this.#run(table);
      if (failed !== undefined)
        throw new Error(`the tests of ${table} fail without any mutant: ${failed}`);
    });
    const path = join(this.#copy, file);
    const original = readFileSync(path);
    writeFileSync(path, text);
    try {
      return await this.#run(table);
    } finally {
      writeFileSync(path, original);
    }
  }

  async #run(table: keyof Tables): Promise<string | undefined> {
    const results = join(this.#copy, 'results.json');
    rmSync(results, { force: true });
    await promisify(execFile)(
      process.execPath,
      [
        '--experimental-vm-modules',
        'node_modules/jest/bin/jest.js',
        '--selectProjects',
        'unit',
        '--runInBand',
        '--json',
        `--outputFile=${results}`,
        '--runTestsByPath',
        ...TESTS[table],
      ],
      { cwd: this.#copy, timeout: WITHIN_MS, killSignal: 'SIGKILL' },
    ).catch(() => {});
    if (!existsSync(results)) return 'the tests do not come to an end';
    const { testResults } = JSON.parse(readFileSync(results, 'utf8')) as JestResults;
    const failed = testResults.flatMap(({ message, assertionResults }) =>
      assertionResults.length === 0
        ? [message]
        : assertionResults
            .filter(({ status }) => status === 'failed')
            .map(({ fullName }) => fullName),
    )[0];
    return failed === undefined
      ? undefined
      : stripVTControlCharacters(failed).replace(/\s+/g, ' ').trim().slice(0, 120);
  }

  close(): void {
    rmSync(this.#copy, { recursive: true, force: true });
  }
}
