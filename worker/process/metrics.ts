/**
 * Metrics of the worker about CI servers, Kubernetes, waits and webhooks. The Temporal runtime
 * exports its own.
 */
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';
import type { RequestObserver } from '../../activities/ciServers/index.ts';
import type { ApiRequestMetrics } from '../../activities/compute/kubernetes/apiServer.ts';
import type { JobPodCount } from '../../activities/compute/kubernetes/jobPodOwnership.ts';
import type { SweepReport } from '../../core/contract/index.ts';
import { createJobDurations } from '../webhook/setMetrics.ts';
import type { JobDelivery } from '../webhook/jobDelivery.ts';
import type { ScaleSetActivity } from '../../activities/ports/activityPorts.ts';
import { createScaleSetMetrics } from './scaleSetMetrics.ts';
import { createSweepMetrics } from './sweepMetrics.ts';

/** Metrics of a process, updated by calling these functions. */
export interface Metrics {
  readonly registry: Registry;
  readonly ciRequest: RequestObserver;
  readonly kubernetesRequest: (measure: ApiRequestMetrics) => void;
  /** Sets the number of pods that jobs created themselves. */
  readonly jobPods: (count: JobPodCount) => void;
  /** Counts a wait that was completed (`true`) or not pending (`false`). */
  readonly podWait: (completed: boolean) => void;
  readonly webhook: (outcome: string) => void;
  /** Records an event of a job on a runner of this set. */
  readonly job: (set: string, job: JobDelivery) => void;
  /** Counts deliveries whose redelivery was requested. */
  readonly redelivered: (credential: string, count: number) => void;
  /** Records what the listener of a set's scale set has done. */
  readonly scaleSet: (set: string, activity: ScaleSetActivity) => void;
  /** Records a sweep. */
  readonly sweep: (report: SweepReport) => void;
}

const SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Creates the metrics and their registry, with the default metrics of Node.js. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const ciRequests = new Counter({
    name: 'holdfast_ci_requests_total',
    help: 'Requests to the CI server',
    labelNames: ['credential', 'route', 'status'],
    registers,
  });
  const ciSeconds = new Histogram({
    name: 'holdfast_ci_request_duration_seconds',
    help: 'Duration of requests to the CI server, without the time in the queue of its credential',
    labelNames: ['credential', 'route'],
    buckets: SECONDS,
    registers,
  });
  const ciRemaining = new Gauge({
    name: 'holdfast_ci_rate_limit_remaining',
    help: 'Requests left in the current window of the primary rate limit',
    labelNames: ['credential'],
    registers,
  });
  const kubernetesRequests = new Counter({
    name: 'holdfast_kubernetes_requests_total',
    help: 'Requests to the Kubernetes API',
    labelNames: ['verb', 'resource', 'status'],
    registers,
  });
  const kubernetesSeconds = new Histogram({
    name: 'holdfast_kubernetes_request_duration_seconds',
    help: 'Duration of requests to the Kubernetes API; of a watch: until it was opened',
    labelNames: ['verb', 'resource'],
    buckets: SECONDS,
    registers,
  });
  const jobPods = new Gauge({
    name: 'holdfast_job_pods',
    help: 'Pods and Jobs that GitHub\'s container hooks created for runners; owned="false": without an owner reference to the pod of the runner, so they would outlive the runner',
    labelNames: ['owned'],
    registers,
  });
  const completions = new Counter({
    name: 'holdfast_pod_wait_completions_total',
    help: 'Pod events that the watcher reported; completed="false": no workflow waited for it',
    labelNames: ['completed'],
    registers,
  });
  const webhooks = new Counter({
    name: 'holdfast_webhook_deliveries_total',
    help: 'Webhook deliveries by outcome',
    labelNames: ['outcome'],
    registers,
  });
  const redeliveries = new Counter({
    name: 'holdfast_webhook_redeliveries_total',
    help: 'Failed webhook deliveries that the CI server was asked to send again',
    labelNames: ['credential'],
    registers,
  });
  return {
    registry,
    ciRequest({ credential, route, status, ms, rateLimitRemaining }) {
      ciRequests.inc({ credential, route, status: String(status ?? 'none') });
      ciSeconds.observe({ credential, route }, ms / 1_000);
      if (rateLimitRemaining !== undefined) ciRemaining.set({ credential }, rateLimitRemaining);
    },
    kubernetesRequest({ verb, resource, status, ms }) {
      kubernetesRequests.inc({ verb, resource, status: status === 0 ? 'none' : String(status) });
      kubernetesSeconds.observe({ verb, resource }, ms / 1_000);
    },
    jobPods({ owned, unowned }) {
      jobPods.set({ owned: 'true' }, owned);
      jobPods.set({ owned: 'false' }, unowned);
    },
    podWait: (completed) => completions.inc({ completed: String(completed) }),
    webhook: (outcome) => webhooks.inc({ outcome }),
    job: createJobDurations(registry),
    redelivered: (credential, count) => redeliveries.inc({ credential }, count),
    scaleSet: createScaleSetMetrics(registry),
    sweep: createSweepMetrics(registry),
  };
}
