/** Metrics of the scale set listeners in this process. */
import { Counter, Gauge, type Registry } from 'prom-client';
import type { ScaleSetActivity } from '../../activities/ports/activityPorts.ts';

/**
 * Time after the last attempt of this worker from which another one has the session, or none (ms).
 * Attempts follow each other after five minutes at most.
 */
const ELSEWHERE_MS = 15 * 60_000;

/**
 * Registers the metrics.
 * @returns the function that records an activity of a set's listener
 */
export function createScaleSetMetrics(
  registry: Registry,
): (set: string, activity: ScaleSetActivity) => void {
  const common = { labelNames: ['set'], registers: [registry] };
  /** Times at which the sessions of this worker ended (ms since the epoch), by set. */
  const endedAt = new Map<string, number>();
  const sessions = new Gauge({
    name: 'holdfast_scaleset_session_up',
    help: 'Whether this worker holds the session of the scale set of a set',
    ...common,
    collect() {
      for (const [set, at] of endedAt) if (Date.now() - at >= ELSEWHERE_MS) forget(set);
    },
  });
  const messages = new Counter({
    name: 'holdfast_scaleset_messages_total',
    help: 'Messages of scale sets that were read',
    ...common,
  });
  const acquired = new Counter({
    name: 'holdfast_scaleset_jobs_acquired_total',
    help: 'Jobs that were acquired for scale sets',
    ...common,
  });
  const statistics = new Gauge({
    name: 'holdfast_scaleset_statistics_timestamp_seconds',
    help: 'Time at which the numbers of the scale set were last read or confirmed',
    ...common,
  });
  const forget = (set: string): void => {
    endedAt.delete(set);
    sessions.remove({ set });
    statistics.remove({ set });
  };
  return (set, activity) => {
    if (activity.over) return forget(set);
    if (activity.up) endedAt.delete(set);
    else endedAt.set(set, Date.now());
    sessions.set({ set }, activity.up ? 1 : 0);
    if (activity.up) statistics.set({ set }, Date.now() / 1_000);
    messages.inc({ set }, activity.messages ?? 0);
    acquired.inc({ set }, activity.acquired ?? 0);
  };
}
