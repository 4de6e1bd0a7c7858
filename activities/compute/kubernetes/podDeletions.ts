/** Deletions that this process has asked for, each with the pod's own grace: asking again would tell the API server nothing new. */

type Answer = 'gone' | 'terminating';

/** Beyond this the oldest are forgotten, which costs one request and nothing else. */
const MOST = 20_000;

export class PodDeletions {
  readonly #asked = new Map<string, Promise<Answer>>();

  /** @returns the answer to the first time it was asked, or `gone` after {@link over} */
  async once(uid: string, ask: () => Promise<Answer>): Promise<Answer> {
    const known = this.#asked.get(uid);
    if (known !== undefined) return await known;
    const asked = ask();
    this.#asked.set(uid, asked);
    const [oldest] = this.#asked.keys();
    if (this.#asked.size > MOST && oldest !== undefined) this.#asked.delete(oldest);
    try {
      return await asked;
    } catch (error) {
      this.#asked.delete(uid);
      throw error;
    }
  }

  /** The watch does not have the pod any more. That alone says little (its labels may have been changed), after a deletion everything. */
  over(uid: string): void {
    if (this.#asked.has(uid)) this.#asked.set(uid, Promise.resolve('gone'));
  }
}
