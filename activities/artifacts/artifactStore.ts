/** Where jobs' logs and artifacts are kept when their pods are gone. Keys are paths with slashes (core/domain/artifactLayout.ts). */
export interface ArtifactStore {
  /**
   * Keeps all of it under that key, or nothing: what was there before stays until then.
   * @throws Error when it could not be kept; it may be tried again
   */
  put(key: string, content: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<void>;
  /** @returns `undefined`: nothing is kept there. @throws Error when that cannot be told */
  get(key: string): Promise<Uint8Array | undefined>;
}
