import type { SweepReport } from '../../core/contract/index.ts';
import { errorMessage } from '../../core/domain/errorMessage.ts';
import { ComputeError } from '../ports/computeError.ts';
import type { SweepSources } from './sweepSources.ts';

/** Lists that a worker may lack permission for. */
const OPTIONAL_LISTS: ReadonlySet<string> = new Set([
  'secrets',
  'claims',
  'container steps',
  'job secrets',
]);

/** Reads the lists of a sweep, and notes those that are incomplete or not permitted. */
export class ListAttempts {
  readonly incompleteLists: SweepReport['incompleteLists'] = [];
  readonly skippedLists: SweepReport['skippedLists'] = [];
  readonly #sources: Pick<SweepSources, 'signal' | 'resources'>;

  constructor(sources: Pick<SweepSources, 'signal' | 'resources'>) {
    this.#sources = sources;
  }

  /**
   * Reads a list.
   * @returns `undefined` if it is incomplete or not permitted
   * @throws the abort reason of the signal
   */
  async read<T>(list: string, run: () => Promise<T>): Promise<T | undefined> {
    try {
      return await run();
    } catch (error) {
      this.#sources.signal?.throwIfAborted();
      const reason = errorMessage(error);
      const isOptional =
        this.#sources.resources === 'where permitted' &&
        OPTIONAL_LISTS.has(list) &&
        error instanceof ComputeError &&
        error.kind === 'forbidden';
      (isOptional ? this.skippedLists : this.incompleteLists).push({ list, reason });
      return undefined;
    }
  }

  /** Returns whether the list is incomplete or not permitted. */
  isMissing(list: string): boolean {
    return [...this.skippedLists, ...this.incompleteLists].some((each) => each.list === list);
  }
}
