/** Counts the changes of the simulator's state and notifies waiters. */
export class Changes {
  version = 0;
  #waiters = new Set<() => void>();

  bump(): void {
    this.version++;
    for (const wake of this.#waiters) wake();
  }

  /**
   * Resolves at the first change after `version`, immediately if there was one, or after
   * `timeoutMs`.
   */
  async next(version: number, timeoutMs: number): Promise<number> {
    if (this.version > version) return this.version;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#waiters.delete(done);
        resolve();
      };
      const timer = setTimeout(done, timeoutMs);
      this.#waiters.add(done);
    });
    return this.version;
  }

  /**
   * Resolves with the first truthy value of `probe`, which is evaluated after every change.
   * @throws Error after `timeoutMs`, with `what`
   */
  async waitFor<T>(probe: () => T, what: string, timeoutMs: number): Promise<NonNullable<T>> {
    const deadline = Date.now() + timeoutMs;
    for (;;) {
      const version = this.version;
      const value = probe();
      if (value) return value;
      const left = deadline - Date.now();
      if (left <= 0) throw new Error(`simulator: ${what} did not happen within ${timeoutMs} ms`);
      await this.next(version, Math.min(left, 1000));
    }
  }
}
