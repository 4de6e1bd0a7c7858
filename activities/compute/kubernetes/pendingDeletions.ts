import { LRUCache } from 'lru-cache';

type Answer = 'deleted' | 'terminating';

/** Forgetting one costs one request and nothing else. */
const MOST = 20_000;

/** Deletions that this process has asked for, each with the pod's own grace: asking again would tell the API server nothing new. */
export class PendingDeletions {
  readonly #answers = new LRUCache<string, Promise<Answer>>({ max: MOST });

  /** @returns the answer to the first time it was asked, or `gone` after {@link over} */
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

  /** The pod is gone. */
  over(uid: string): void {
    if (this.#answers.has(uid)) this.#answers.set(uid, Promise.resolve('deleted'));
  }
}
