/** The file of the payload codec's keys, read again when it changes. */
import { readFileSync, statSync } from 'node:fs';
import { parseCodecKeys, type CodecKeys } from './codecKeys.ts';

/** The environment variable that names the file, for the worker and the command alike. */
export const CODEC_KEY_FILE = 'HOLDFAST_CODEC_KEY_FILE';

/** Told once for each change that cannot be read; the keys of before are used on. */
export type OnReadError = (error: Error) => void;

export class CodecKeyFile {
  readonly #path: string;
  readonly #onUnreadable: OnReadError;
  #version: string;
  #keys: CodecKeys;

  /** @throws Error on one line, which names the file and never what is in it */
  constructor(path: string, onUnreadable: OnReadError = () => undefined) {
    this.#path = path;
    this.#onUnreadable = onUnreadable;
    this.#version = this.#look();
    this.#keys = this.#read();
  }

  /** The keys of now. A file that has become unreadable leaves those of before: a life under way must not stop for a slip in it. */
  keys(): CodecKeys {
    try {
      const version = this.#look();
      if (version === this.#version) return this.#keys;
      this.#version = version;
      this.#keys = this.#read();
    } catch (error) {
      this.#reportOnce(error);
    }
    return this.#keys;
  }

  /** Another, if the file is: a Secret that is mounted changes by being another file. Told apart in nanoseconds. */
  #look(): string {
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
