/** Metrics of the scale set listeners in this process. */
import { Counter, Gauge, type Registry } from 'prom-client';
import type { ScaleSetActivity } from '../../activities/ports/activityPorts.ts';

/**
 * Registers the metrics.
 * @returns the function that records an activity of a set's listener
 */
export function createScaleSetMetrics(
  registry: Registry,
): (set: string, activity: ScaleSetActivity) => void {
  const common = { labelNames: ['set'], registers: [registry] };
  const sessions = new Gauge({
    name: 'holdfast_scaleset_session_up',
    help: 'Whether this worker holds the session of the scale set of a set',
    ...common,
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
  return (set, activity) => {
    sessions.set({ set }, activity.up ? 1 : 0);
    if (activity.up) statistics.set({ set }, Date.now() / 1_000);
    messages.inc({ set }, activity.messages ?? 0);
    acquired.inc({ set }, activity.acquired ?? 0);
  };
}
