import { LRUCache } from 'lru-cache';

type Answer = 'deleted' | 'terminating';

/** Maximum number of deletions remembered. One that was dropped costs one request. */
const MOST = 20_000;

/**
 * Deletions that this process has requested, each with the pod's own grace period. A second request
 * would have no effect.
 */
export class PendingDeletions {
  readonly #answers = new LRUCache<string, Promise<Answer>>({ max: MOST });

  /**
   * Requests the deletion of a pod once.
   * @returns the response to the first request, or `deleted` after {@link over}
   */
  async once(uid: string, ask: () => Promise<Answer>): Promise<Answer> {
    const asked = this.#answers.get(uid);
    if (asked !== undefined) return await asked;
    const asking = ask();
    this.#answers.set(uid, asking);
    try {
      return await asking;
    } catch (error) {
      this.#answers.delete(uid);
      throw error;
    }
  }

  /** Records that the pod is deleted. */
  over(uid: string): void {
    if (this.#answers.has(uid)) this.#answers.set(uid, Promise.resolve('deleted'));
  }
}
