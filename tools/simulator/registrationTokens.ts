import { randomBytes } from 'node:crypto';
import type { ScopePath } from './types.ts';

/** Registration and remove tokens: reusable for an hour. */
export class RegistrationTokens {
  #tokens = new Map<
    string,
    { scope: ScopePath; kind: 'registration' | 'remove'; expiresMs: number }
  >();

  create(
    scope: ScopePath,
    kind: 'registration' | 'remove',
    lifeMs: number,
  ): { token: string; expiresMs: number } {
    const token = `A${randomBytes(14).toString('hex').toUpperCase()}`;
    const expiresMs = Date.now() + lifeMs;
    this.#tokens.set(token, { scope, kind, expiresMs });
    return { token, expiresMs };
  }

  /** Whether it lets a runner register in that scope now. */
  valid(token: string, scope: ScopePath): boolean {
    const found = this.#tokens.get(token);
    return (
      found?.kind === 'registration' &&
      found.scope.toLowerCase() === scope.toLowerCase() &&
      Date.now() < found.expiresMs
    );
  }
}
