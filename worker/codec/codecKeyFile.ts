/** Reads the key file of the payload codec. */
import { readFileSync, statSync } from 'node:fs';
import { parseCodecKeys, type CodecKeys } from './codecKeys.ts';

/** Environment variable with the path of the key file, for the worker and the command. */
export const CODEC_KEY_FILE = 'HOLDFAST_CODEC_KEY_FILE';

/** Called once for each change of the file that cannot be read. The previous keys stay in use. */
export type OnReadError = (error: Error) => void;

/** Keys of the payload codec, from a file that is read again when it changes. */
export class CodecKeyFile {
  readonly #path: string;
  readonly #onUnreadable: OnReadError;
  #version: string;
  #keys: CodecKeys;

  /**
   * Reads the file.
   * @throws Error with a one-line message that names the file and contains none of its content
   */
  constructor(path: string, onUnreadable: OnReadError = () => undefined) {
    this.#path = path;
    this.#onUnreadable = onUnreadable;
    this.#version = this.#readVersion();
    this.#keys = this.#read();
  }

  /**
   * Returns the current keys. If the file has become unreadable, the previous keys stay in use so
   * that running workflows continue.
   */
  keys(): CodecKeys {
    try {
      const version = this.#readVersion();
      if (version === this.#version) return this.#keys;
      this.#version = version;
      this.#keys = this.#read();
    } catch (error) {
      this.#reportOnce(error);
    }
    return this.#keys;
  }

  /**
   * Returns the version of the file. A changed Secret appears in its volume as another file. Times
   * are compared in nanoseconds.
   */
  #readVersion(): string {
    try {
      const { dev, ino, size, mtimeNs, ctimeNs } = statSync(this.#path, { bigint: true });
      return [dev, ino, size, mtimeNs, ctimeNs].join(' ');
    } catch (error) {
      return this.#unreadable(error);
    }
  }

  #read(): CodecKeys {
    let text: string;
    try {
      text = readFileSync(this.#path, 'utf8');
    } catch (error) {
      return this.#unreadable(error);
    }
    try {
      return parseCodecKeys(text);
    } catch (error) {
      throw new Error(`${this.#path} ${(error as Error).message}`, { cause: error });
    }
  }

  #unreadable(error: unknown): never {
    throw new Error(
      `cannot read ${this.#path} (${(error as NodeJS.ErrnoException).code}): check the path and its permissions`,
      { cause: error },
    );
  }

  #complained = '';

  #reportOnce(error: unknown): void {
    const { message } = error as Error;
    const complaint = `${this.#version} ${message}`;
    if (complaint === this.#complained) return;
    this.#complained = complaint;
    this.#onUnreadable(
      new Error(`${CODEC_KEY_FILE}: ${message}; the keys of before are used on`, { cause: error }),
    );
  }
}
