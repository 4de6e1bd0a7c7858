/** A dear look at something that many want at once: those who come while one is under way share the next, since this one may have passed what they ask for. */
export class SharedLook<T> {
  readonly #look: () => Promise<T>;
  #running: Promise<T> | undefined;
  #next: Promise<T> | undefined;

  constructor(look: () => Promise<T>) {
    this.#look = look;
  }

  /** What a look finds that begins now or later. */
  async get(): Promise<T> {
    if (this.#running === undefined) return await this.#start();
    this.#next ??= this.#running.then(
      async () => await this.#start(),
      async () => await this.#start(),
    );
    return await this.#next;
  }

  async #start(): Promise<T> {
    this.#next = undefined;
    const running = this.#look().finally(() => {
      if (this.#running === running) this.#running = undefined;
    });
    this.#running = running;
    return await running;
  }
}
