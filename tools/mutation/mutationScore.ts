/** Figures of a mutation run. */
import { dirname } from 'node:path';
import type { MutantResult } from './mutationRun.ts';

type Result = Pick<MutantResult, 'file' | 'result'>;

/** Number of mutants of one folder. */
export interface FolderScore {
  readonly folder: string;
  readonly mutants: number;
  /** Mutants that a test has noticed, by a failure or by not ending. */
  readonly killed: number;
}

const isKilled = ({ result }: Result): boolean => result === 'killed' || result === 'timeout';

/** Returns the share of mutants that were killed (percent), or `undefined` without mutants. */
export function mutationScore(results: readonly Result[]): number | undefined {
  return results.length === 0
    ? undefined
    : (100 * results.filter(isKilled).length) / results.length;
}

/** Returns the figures of each folder, by name. */
export function folderScores(results: readonly Result[]): FolderScore[] {
  const folders = Map.groupBy(results, ({ file }) => dirname(file));
  return [...folders]
    .map(([folder, ofFolder]) => ({
      folder,
      mutants: ofFolder.length,
      killed: ofFolder.filter(isKilled).length,
    }))
    .toSorted((a, b) => a.folder.localeCompare(b.folder));
}
