import type {
  ActivitySlotInfo,
  CustomSlotSupplier,
  SlotPermit,
  SlotReleaseContext,
} from '@temporalio/worker';
import PQueue from 'p-queue';
import { systemClock, type Clock } from '../../activities/ciServers/clock.ts';

interface GatedSlotPermit extends SlotPermit {
  readonly free: () => void;
}

export interface GatedSlotSupplierOptions {
  /** Activities at once. */
  readonly limit: number;
  /** Does what the activities of this lane need answer? */
  readonly reachable: () => boolean;
  readonly clock?: Clock;
}

/** Between two activities while the server is away. */
const SPACING_MS = 200;

/**
 * The slots of a lane: a task queue whose activities all need one server. While that is away the worker takes an activity from the queue
 * only now and then, which is enough to find out whether it is back, and to say in each of them what it waits for. The others stay at the
 * Temporal server: they hold no slot, fail no attempt, wait out no back-off, and all come as soon as the server is back.
 */
export class GatedSlotSupplier implements CustomSlotSupplier<ActivitySlotInfo> {
  readonly type = 'custom';
  readonly #options: Required<GatedSlotSupplierOptions>;
  readonly #slots: PQueue;
  #nextMs = 0;

  constructor(options: GatedSlotSupplierOptions) {
    this.#options = { clock: systemClock, ...options };
    this.#slots = new PQueue({ concurrency: options.limit });
  }

  async reserveSlot(_context: unknown, signal: AbortSignal): Promise<GatedSlotPermit> {
    const permit = Promise.withResolvers<GatedSlotPermit>();
    const used = async (): Promise<void> => {
      signal.throwIfAborted();
      await this.#turn(signal);
      await new Promise<void>((free) => permit.resolve({ free }));
    };
    this.#slots.add(used).catch(permit.reject);
    return await permit.promise;
  }

  /** For activities of a Worker's own workflows; a lane has none. */
  tryReserveSlot(): null {
    return null;
  }

  markSlotUsed(): void {
    // It counts from its reservation on.
  }

  releaseSlot({ permit }: SlotReleaseContext<ActivitySlotInfo>): void {
    (permit as GatedSlotPermit).free();
  }

  async #turn(signal: AbortSignal): Promise<void> {
    const { clock, reachable } = this.#options;
    while (!reachable() && clock.elapsed() < this.#nextMs) await clock.sleep(SPACING_MS, signal);
    this.#nextMs = clock.elapsed() + SPACING_MS;
  }
}
