import { primaryLimit, secondaryLimit, type Answer } from './responses.ts';
import type { Credential } from './credentials.ts';

interface Budget {
  limit: number;
  used: number;
  resetMs: number;
}

/**
 * GitHub's secondary limits for one credential
 * (https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api).
 */
const MAX_IN_FLIGHT = 100;
const POINTS_PER_MINUTE = 900;
const REGISTRATIONS_PER_5_MIN = 1500;

/** A count in fixed windows. */
class Window {
  #startMs = 0;
  #sum = 0;
  readonly #lengthMs: number;

  constructor(lengthMs: number) {
    this.#lengthMs = lengthMs;
  }

  add(points: number, now: number): number {
    if (now - this.#startMs >= this.#lengthMs) {
      this.#startMs = now;
      this.#sum = 0;
    }
    this.#sum += points;
    return this.#sum;
  }
}

/** Primary and secondary limits of each credential. */
export class RateLimits {
  readonly #limit: number;
  readonly #windowMs: number;
  readonly #secondary: boolean;
  #budgets = new Map<string, Budget>();
  #inFlight = new Map<string, number>();
  #points = new Map<string, Window>();

  constructor(options: { limit: number; windowMs: number }, secondary: boolean) {
    this.#limit = options.limit;
    this.#windowMs = options.windowMs;
    this.#secondary = secondary;
  }

  /**
   * Counts one request.
   * @returns the error response if a limit is exceeded
   */
  take(credential: Credential, method: string, endpoint: string): Answer | undefined {
    const budget = this.#budget(credential.name);
    if (budget.used >= budget.limit) return primaryLimit(403, whose(credential));
    budget.used++;
    return this.#secondary ? this.#secondaryLimit(credential, method, endpoint) : undefined;
  }

  /** A 304 is free. */
  refund(credentialName: string): void {
    const budget = this.#budget(credentialName);
    budget.used = Math.max(0, budget.used - 1);
  }

  began(credentialName: string): void {
    this.#inFlight.set(credentialName, (this.#inFlight.get(credentialName) ?? 0) + 1);
  }

  ended(credentialName: string): void {
    this.#inFlight.set(credentialName, (this.#inFlight.get(credentialName) ?? 1) - 1);
  }

  /** Sets the remaining budget of a credential. */
  set(
    credentialName: string,
    state: { limit?: number; remaining?: number; resetInMs?: number },
  ): void {
    const budget = this.#budget(credentialName);
    if (state.limit !== undefined) budget.limit = state.limit;
    if (state.remaining !== undefined) budget.used = budget.limit - state.remaining;
    if (state.resetInMs !== undefined) budget.resetMs = Date.now() + state.resetInMs;
  }

  status(credentialName: string): {
    limit: number;
    used: number;
    remaining: number;
    reset: number;
  } {
    const budget = this.#budget(credentialName);
    return {
      limit: budget.limit,
      used: budget.used,
      remaining: Math.max(0, budget.limit - budget.used),
      reset: Math.ceil(budget.resetMs / 1000),
    };
  }

  #secondaryLimit(credential: Credential, method: string, endpoint: string): Answer | undefined {
    const now = Date.now();
    const points = this.#window(`${credential.name} ${endpoint}`, 60_000).add(
      method === 'GET' ? 1 : 5,
      now,
    );
    const registering = endpoint.endsWith('/generate-jitconfig');
    const scope = `${credential.name} registrations`;
    const registrations = registering ? this.#window(scope, 300_000).add(1, now) : 0;
    const inFlight = this.#inFlight.get(credential.name) ?? 0;
    const over =
      points > POINTS_PER_MINUTE ||
      registrations > REGISTRATIONS_PER_5_MIN ||
      inFlight > MAX_IN_FLIGHT;
    return over ? secondaryLimit(403, 'modern', 60) : undefined;
  }

  #window(key: string, lengthMs: number): Window {
    const window = this.#points.get(key) ?? new Window(lengthMs);
    this.#points.set(key, window);
    return window;
  }

  #budget(name: string): Budget {
    let budget = this.#budgets.get(name);
    if (!budget || Date.now() >= budget.resetMs) {
      budget = {
        limit: budget?.limit ?? this.#limit,
        used: 0,
        resetMs: Date.now() + this.#windowMs,
      };
      this.#budgets.set(name, budget);
    }
    return budget;
  }
}

export const whose = (credential: Credential): string =>
  credential.kind === 'app'
    ? `installation ID ${credential.installationId}`
    : `user ID ${credential.userId}`;
