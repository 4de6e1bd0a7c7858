/** When, in the cluster's own count, this process created which pod. */

/** Beyond this the oldest are forgotten, which costs one read of the pod and nothing else. */
const MOST = 20_000;

export class CreatedPods {
  readonly #resourceVersions = new Map<string, string>();

  add(uid: string, resourceVersion: string): void {
    this.#resourceVersions.set(uid, resourceVersion);
    if (this.#resourceVersions.size <= MOST) return;
    const [oldest] = this.#resourceVersions.keys();
    if (oldest !== undefined) this.#resourceVersions.delete(oldest);
  }

  resourceVersionOf(uid: string): string | undefined {
    return this.#resourceVersions.get(uid);
  }
}
