/** Which unit tests import a source file, directly or through other files. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Import statements that are executed: not those of types alone. */
const IMPORT = /^(?:import|export)\s+(?!type\s)(?:[^'"]*?\sfrom\s+)?'(\.[^']+)'/gm;

/** The imports between the unit tests and the source files of a project. */
export class ImportGraph {
  readonly #root: string;
  readonly #imports = new Map<string, readonly string[]>();
  /** Number of imports from each test to the files that it reaches. */
  readonly #distances: ReadonlyMap<string, ReadonlyMap<string, number>>;

  /** @param root - folder of the project */
  constructor(root: string) {
    this.#root = root;
    const tests = globSync('test/unit/**/*.test.ts', { cwd: root });
    this.#distances = new Map(tests.map((test) => [test, this.#distancesFrom(test)]));
  }

  /** Returns the unit tests that import a file, those with the fewest imports between first. */
  testsOf(file: string): string[] {
    return [...this.#distances]
      .flatMap(([test, distances]) => {
        const distance = distances.get(file);
        return distance === undefined ? [] : [{ test, distance, reached: distances.size }];
      })
      .toSorted((a, b) => a.distance - b.distance || a.reached - b.reached)
      .map(({ test }) => test);
  }

  #distancesFrom(test: string): Map<string, number> {
    const distances = new Map([[test, 0]]);
    for (const [file, distance] of distances)
      for (const imported of this.#importsOf(file))
        if (!distances.has(imported)) distances.set(imported, distance + 1);
    return distances;
  }

  #importsOf(file: string): readonly string[] {
    const known = this.#imports.get(file);
    if (known !== undefined) return known;
    const source = readFileSync(join(this.#root, file), 'utf8');
    const found = [...source.matchAll(IMPORT)]
      .map(([, path = '']) => join(dirname(file), path))
      // Source text in a test may contain imports of files that do not exist.
      .filter((path) => path.endsWith('.ts') && existsSync(join(this.#root, path)));
    this.#imports.set(file, found);
    return found;
  }
}
