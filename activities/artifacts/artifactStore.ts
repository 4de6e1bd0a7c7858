/**
 * Error for an object that the store never accepts, for example because its key or its content is
 * too long. It is about this object only: a retry fails as well, and other objects can be stored.
 */
export class ObjectRejectedError extends Error {
  override readonly name = 'ObjectRejectedError';
}

/**
 * Store for the logs and artifacts of jobs after their pods are deleted. Keys are paths with
 * slashes (core/domain/artifactLayout.ts).
 */
export interface ArtifactStore {
  /**
   * Stores the content under a key, atomically: before that, the key keeps its previous content.
   * @throws ObjectRejectedError if the store never accepts it
   * @throws Error if it could not be stored. A retry is possible
   */
  put(key: string, content: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<void>;
  /**
   * Returns the content of a key, or `undefined` if the key does not exist.
   * @throws Error if that cannot be determined
   */
  get(key: string): Promise<Uint8Array | undefined>;
}
