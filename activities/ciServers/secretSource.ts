import { readFile } from 'node:fs/promises';
import { CiServerError } from '../ports/ciServerError.ts';
import type { Credential, SecretProvider } from './credentials.ts';

/**
 * Source of a secret. It is read for every use (a few bytes), so the next request notices a rotated
 * file, including a changed Kubernetes Secret, without a watch.
 */
export class SecretSource {
  readonly #credential: string;
  readonly #file: string | undefined;
  readonly #variable: string | undefined;
  readonly #provider: SecretProvider | undefined;

  constructor(name: string, credential: Credential) {
    this.#credential = name;
    this.#file = credential.type === 'pat' ? credential.tokenFile : credential.privateKeyFile;
    this.#variable = credential.type === 'pat' ? credential.tokenEnv : credential.privateKeyEnv;
    this.#provider =
      credential.type === 'pat' ? credential.tokenProvider : credential.privateKeyProvider;
  }

  /**
   * Returns the secret.
   * @throws CiServerError `credentials` if it cannot be read or is empty. The next rotation may
   * provide it
   */
  async read(): Promise<string> {
    const { text, place } = await this.#find();
    const secret = text.trim();
    if (secret === '') throw this.#missing(`${place} is empty`);
    return secret;
  }

  async #find(): Promise<{ text: string; place: string }> {
    if (this.#provider !== undefined) return await this.#ask(this.#provider);
    return this.#file === undefined ? this.#readVariable() : await this.#readFile(this.#file);
  }

  async #ask(provider: SecretProvider): Promise<{ text: string; place: string }> {
    try {
      return { text: await provider(), place: "the provider's answer" };
    } catch (error) {
      throw this.#missing(`its provider failed: ${(error as Error).message}`);
    }
  }

  #readVariable(): { text: string; place: string } {
    const variable = this.#variable ?? '';
    const text = process.env[variable];
    if (text === undefined) throw this.#missing(`environment variable ${variable} is not set`);
    return { text, place: `environment variable ${variable}` };
  }

  async #readFile(file: string): Promise<{ text: string; place: string }> {
    try {
      return { text: await readFile(file, 'utf8'), place: `file ${file}` };
    } catch (error) {
      throw this.#missing(
        `cannot read file ${file}: ${(error as NodeJS.ErrnoException).code ?? 'unknown error'}`,
      );
    }
  }

  #missing(problem: string): CiServerError {
    return new CiServerError(
      'credentials',
      `credential "${this.#credential}": ${problem}; put the secret there, no restart is needed for a file`,
    );
  }
}
