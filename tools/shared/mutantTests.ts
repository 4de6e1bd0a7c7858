/** Unit tests that run on a mutant, in a copy of the project. */
import { execFile, type ExecFileException } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify, stripVTControlCharacters } from 'node:util';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Folders that the copy of the project does not need. */
const EXCLUDED = new Set(['node_modules', '.git', '.holdfast', 'dist', 'coverage']);

/** Time limit of the tests, which take some seconds (ms). A mutant can cause an endless loop. */
const TIMEOUT_MS = 120_000;
/** Maximum length of jest's output (bytes). */
const MAX_OUTPUT = 64 * 1024 ** 2;

/** Result of tests that did not end within their time. */
export const TIMED_OUT = 'the tests time out';

/** Runs unit tests in a copy of the project, in which one file is replaced by a mutant. */
export class MutantTests {
  readonly #copy = mkdtempSync(join(tmpdir(), 'holdfast-mutants-'));

  constructor() {
    cpSync(ROOT, this.#copy, { recursive: true, filter: (path) => !EXCLUDED.has(basename(path)) });
    symlinkSync(join(ROOT, 'node_modules'), join(this.#copy, 'node_modules'));
  }

  /**
   * Returns the name of a test that fails with the mutant, {@link TIMED_OUT}, or `undefined` if all
   * pass.
   * @param file - path of the mutated file, relative to the project
   * @param text - source of the file with the mutation
   * @param tests - paths of the test files
   */
  async failingTest(
    { file, text }: { readonly file: string; readonly text: string },
    tests: readonly string[],
  ): Promise<string | undefined> {
    const path = join(this.#copy, file);
    const original = readFileSync(path);
    writeFileSync(path, text);
    try {
      return await this.failingTestOfOriginal(tests);
    } finally {
      writeFileSync(path, original);
    }
  }

  /** Does the same without a mutant. */
  async failingTestOfOriginal(tests: readonly string[]): Promise<string | undefined> {
    try {
      await promisify(execFile)(
        process.execPath,
        [
          '--experimental-vm-modules',
          'node_modules/jest/bin/jest.js',
          '--selectProjects',
          'unit',
          '--runInBand',
          '--bail',
          '--runTestsByPath',
          ...tests,
        ],
        { cwd: this.#copy, timeout: TIMEOUT_MS, killSignal: 'SIGKILL', maxBuffer: MAX_OUTPUT },
      );
      return undefined;
    } catch (error) {
      const { killed, stderr = '' } = error as ExecFileException & { stderr?: string };
      return killed === true ? TIMED_OUT : firstFailure(stderr);
    }
  }

  /** Deletes the copy. */
  close(): void {
    rmSync(this.#copy, { recursive: true, force: true });
  }
}

/** Returns the name of the first failed test in jest's output. */
function firstFailure(output: string): string {
  const [, name = 'jest fails'] = /^\s*● (.+)$/m.exec(stripVTControlCharacters(output)) ?? [];
  return name.trim().slice(0, 120);
}
