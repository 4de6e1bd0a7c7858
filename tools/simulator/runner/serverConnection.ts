import { setTimeout as sleep } from 'node:timers/promises';

export interface ServerAnswer {
  status: number;
  /** Parsed JSON, or undefined. */
  body: unknown;
}

const FIRST_RETRY_MS = 100;
const LAST_RETRY_MS = 5000;

/**
 * The connection to the server. Network errors and 5xx are retried with backoff until the caller
 * aborts.
 */
export class ServerConnection {
  readonly #base: string;
  readonly #credential: string | undefined;

  constructor(base: string, credential?: string) {
    this.#base = base.replace(/\/$/, '');
    this.#credential = credential;
  }

  /** @throws the signal's reason when it is aborted; nothing else */
  async request(
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    options: { body?: unknown; signal?: AbortSignal } = {},
  ): Promise<ServerAnswer> {
    for (let retryMs = FIRST_RETRY_MS; ; retryMs = Math.min(retryMs * 2, LAST_RETRY_MS)) {
      const answer = await this.#once(method, path, options);
      if (answer && answer.status < 500) return answer;
      await sleep(retryMs, undefined, options.signal ? { signal: options.signal } : {});
    }
  }

  async #once(
    method: string,
    path: string,
    options: { body?: unknown; signal?: AbortSignal },
  ): Promise<ServerAnswer | undefined> {
    try {
      const response = await fetch(`${this.#base}/_runner/${path}`, {
        method,
        headers: {
          ...(this.#credential === undefined
            ? {}
            : { authorization: `Bearer ${this.#credential}` }),
          ...(options.body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
        ...(options.signal ? { signal: options.signal } : {}),
      });
      const text = await response.text();
      return {
        status: response.status,
        body: text === '' ? undefined : (JSON.parse(text) as unknown),
      };
    } catch {
      options.signal?.throwIfAborted();
      return undefined; // the server is away: the caller's loop tries again
    }
  }
}
