/** The unit tests of the decision tables, which catch mutants that the model does not notice. */
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
import type { Tables } from './decisionTables.ts';
import type { Mutant } from './mutants.ts';
import { memoize } from './interning.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Folders that the copy of the project does not need. */
const EXCLUDED = new Set(['node_modules', '.git', '.holdfast', 'dist', 'coverage']);

/** Time limit of the tests, which take some seconds. A mutant can cause an endless loop. */
const TIMEOUT_MS = 120_000;

/** The test files of each table. */
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

/** Runs the tests of tables in a copy of the project, in which one file is replaced by a mutant. */
export class TableTests {
  readonly #copy = mkdtempSync(join(tmpdir(), 'holdfast-mutants-'));
  /** Tables whose tests pass without a mutant. */
  readonly #passing = new Map<keyof Tables, Promise<void>>();

  constructor() {
    cpSync(ROOT, this.#copy, { recursive: true, filter: (path) => !EXCLUDED.has(basename(path)) });
    symlinkSync(join(ROOT, 'node_modules'), join(this.#copy, 'node_modules'));
  }

  /**
   * Returns the name of a test that fails with the mutant, or `undefined`.
   * @throws Error if the tests fail without the mutant too
   */
  async failingTest({
    table,
    file,
    text,
  }: Pick<Mutant, 'table' | 'file' | 'text'>): Promise<string | undefined> {
    await memoize(this.#passing, table, async () => {
      const failed = await this.#run(table);
      if (failed !== undefined)
        throw new Error(`the tests of ${table} fail without a mutant: ${failed}`);
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
      { cwd: this.#copy, timeout: TIMEOUT_MS, killSignal: 'SIGKILL' },
    ).catch(() => {});
    if (!existsSync(results)) return 'the tests time out';
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

  /** Deletes the copy. */
  close(): void {
    rmSync(this.#copy, { recursive: true, force: true });
  }
}
