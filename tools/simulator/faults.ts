import { randomUUID } from 'node:crypto';
import type { SecondaryForm } from './responses.ts';
import { seededRandom } from '../shared/random.ts';
import { matchesGlob } from './scope.ts';

/** Kinds of faults. Times in ms. */
export type FaultKind =
  /** The response is delayed. Can be combined with other faults. */
  | { kind: 'latency'; ms: number }
  /** Answers this status instead of doing anything, e.g. 502. */
  | { kind: 'status'; status: number; body?: unknown; headers?: Record<string, string> }
  /** Closes the connection without an answer, before or after the request took effect. */
  | { kind: 'drop'; when?: 'before' | 'after' }
  | { kind: 'secondary_limit'; status?: 403 | 429; form?: SecondaryForm; retryAfterS?: number }
  /**
   * The credential's hourly budget counts as used up for this request. @default status 403,
   * resetInMs 60000
   */
  | { kind: 'primary_limit'; status?: 403 | 429; resetInMs?: number }
  /** 404, as for a credential that lost the scope. */
  | { kind: 'not_found' }
  /** 403 for lack of permission. */
  | { kind: 'forbidden' }
  /** Reading runners: busy ones are shown with `busy: false`. */
  | { kind: 'busy_lies' }
  /** Reading runners: online ones are shown as offline. */
  | { kind: 'offline_lies' }
  /** Lists of runners are up to this old. @default 60000 */
  | { kind: 'stale_list'; ageMs?: number }
  /**
   * DELETE of a runner returns 204 in the first `forMs` of its job, which continues. @default 60000
   */
  | { kind: 'delete_accepts_busy'; forMs?: number }
  /** DELETE of an idle runner answers 422 busy. */
  | { kind: 'delete_says_busy'; text?: 'current' | 'older' }
  /** A webhook delivery is lost. */
  | { kind: 'webhook_lost' }
  /** A webhook delivery is sent twice. */
  | { kind: 'webhook_doubled' }
  /** A webhook delivery is delayed. */
  | { kind: 'webhook_delayed'; ms: number }
  /** Webhook deliveries are held back until there are `of`, and sent in random order. */
  | { kind: 'webhook_shuffled'; of?: number };

/** A fault and the requests that it applies to. */
export type Fault = FaultKind & {
  /**
   * `METHOD /path` with `*` as wildcard, such as `DELETE *` or `GET /orgs/acme/actions/runners*`,
   * without `/api/v3`; for webhooks `workflow_job.queued`. A pattern matches the runner protocol
   * only if it names `/_runner`. @default all requests of its kind
   */
  endpoint?: string;
  /** Name of the credential it applies to. @default all */
  credential?: string;
  /** How often it happens. @default until cleared */
  count?: number;
  /** Chance of each match, 0 to 1, drawn from the simulator's seed. @default 1 */
  probability?: number;
};

export type ActiveFault = Fault & { id: string; hits: number };

/** A request or delivery to match with faults. */
export interface FaultTarget {
  /** `METHOD /path`, or `event.action`. */
  endpoint: string;
  credential?: string | undefined;
}

/** The faults that are switched on. */
export class Faults {
  #faults: ActiveFault[] = [];
  readonly random: () => number;

  constructor(seed: number) {
    this.random = seededRandom(seed);
  }

  add(fault: Fault): ActiveFault {
    const active: ActiveFault = { ...fault, id: randomUUID(), hits: 0 };
    this.#faults.push(active);
    return active;
  }

  /** Switches one off, or all. */
  clear(id?: string): void {
    this.#faults = id === undefined ? [] : this.#faults.filter((fault) => fault.id !== id);
  }

  /** Returns the active faults, with the number of times that each occurred. */
  list(): ActiveFault[] {
    return this.#faults.map((fault) => ({ ...fault }));
  }

  /** Returns the faults of these kinds that occur now, and counts them. */
  take<K extends FaultKind['kind']>(
    kinds: readonly K[],
    target: FaultTarget,
  ): Extract<ActiveFault, { kind: K }>[] {
    return this.#faults.filter((fault): fault is Extract<ActiveFault, { kind: K }> =>
      this.#happens(fault, kinds, target),
    );
  }

  /** Returns the first fault of these kinds that occurs now, and counts it. */
  first<K extends FaultKind['kind']>(
    kinds: readonly K[],
    target: FaultTarget,
  ): Extract<ActiveFault, { kind: K }> | undefined {
    return this.#faults.find((fault): fault is Extract<ActiveFault, { kind: K }> =>
      this.#happens(fault, kinds, target),
    );
  }

  #happens(fault: ActiveFault, kinds: readonly string[], target: FaultTarget): boolean {
    if (!kinds.includes(fault.kind) || !applies(fault, target)) return false;
    if (fault.count !== undefined && fault.hits >= fault.count) return false;
    if (fault.probability !== undefined && this.random() >= fault.probability) return false;
    fault.hits++;
    return true;
  }
}

function applies(fault: Fault, target: FaultTarget): boolean {
  if (fault.credential !== undefined && fault.credential !== target.credential) return false;
  if (fault.endpoint === undefined) return !target.endpoint.includes(' /_runner');
  if (target.endpoint.includes(' /_runner') && !fault.endpoint.includes('/_runner')) return false;
  return matchesGlob(fault.endpoint, target.endpoint);
}
