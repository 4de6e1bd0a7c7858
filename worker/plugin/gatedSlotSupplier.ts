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

/** Options of {@link GatedSlotSupplier}. */
export interface GatedSlotSupplierOptions {
  /** Maximum concurrent activities. */
  readonly limit: number;
  /** Returns whether the server that the activities need is reachable. */
  readonly reachable: () => boolean;
  readonly clock?: Clock;
}

/** Time between two activities during an outage (ms). */
const SPACING_MS = 200;

/**
 * Task slots of a task queue whose activities all need one server. During an outage the worker
 * takes an activity at long intervals. That is enough to detect the end of the outage and to report
 * what each activity waits for. The others stay at the Temporal server, where they use no slot,
 * attempt or back-off, and all start when the server is back.
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

  /**
   * Reserves nothing. Only activities that workflows of the same Worker schedule use it, and a lane
   * has none.
   */
  tryReserveSlot(): null {
    return null;
  }

  markSlotUsed(): void {
    // A slot counts from its reservation on.
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
