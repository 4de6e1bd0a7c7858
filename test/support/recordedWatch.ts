import type { Compute } from '../../activities/ports/compute.ts';
import type { PodRef, PodView } from '../../core/domain/pod.ts';
import { HANGS_MS } from './until.ts';

export interface RecordedEvent {
  readonly pod: PodView;
  readonly previous: PodView | undefined;
}

/** A watch whose calls are recorded and can be awaited. */
export interface RecordedWatch {
  readonly events: readonly RecordedEvent[];
  readonly relists: readonly ReadonlyMap<string, PodView>[];
  /** The events of one pod, oldest first. */
  of(pod: PodRef): RecordedEvent[];
  /**
   * Returns the first matching event, past or future.
   * @throws Error after `timeoutMs`, with the last events
   */
  until(
    what: string,
    fits: (event: RecordedEvent) => boolean,
    timeoutMs?: number,
  ): Promise<RecordedEvent>;
  synced(): boolean;
  stop(): Promise<void>;
}

export async function recordWatch(compute: Compute): Promise<RecordedWatch> {
  const events: RecordedEvent[] = [];
  const relists: ReadonlyMap<string, PodView>[] = [];
  const waiting = new Set<() => void>();
  const watch = await compute.watch({
    changed: (pod, previous) => {
      events.push({ pod, previous });
      for (const look of waiting) look();
    },
    relisted: (pods) => relists.push(pods),
  });
  return {
    events,
    relists,
    of: (pod) => events.filter((event) => event.pod.uid === pod.uid),
    until: (what, fits, timeoutMs = HANGS_MS) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          waiting.delete(look);
          reject(
            new Error(
              `not within ${timeoutMs} ms: ${what}; last events: ${JSON.stringify(events.slice(-10).map(({ pod }) => pod))}`,
            ),
          );
        }, timeoutMs);
        const look = (): void => {
          const found = events.find(fits);
          if (found === undefined) return;
          clearTimeout(timer);
          waiting.delete(look);
          resolve(found);
        };
        waiting.add(look);
        look();
      }),
    synced: () => watch.synced(),
    stop: () => watch.stop(),
  };
}
