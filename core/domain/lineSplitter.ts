/** Splits a stream of UTF-8 text into lines. */
export class LineSplitter {
  readonly #decoder = new TextDecoder();
  #rest = '';

  /** Returns the lines that a chunk completes, without their newlines. */
  push(chunk: Uint8Array): string[] {
    const lines = `${this.#rest}${this.#decoder.decode(chunk, { stream: true })}`.split('\n');
    this.#rest = lines.pop() ?? '';
    return lines;
  }

  /** Returns the text after the last newline. Call it at the end of the stream. */
  end(): string {
    return this.#rest + this.#decoder.decode();
  }
}
