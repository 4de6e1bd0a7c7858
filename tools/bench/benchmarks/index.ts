import type { Benchmark } from '../benchmark.ts';
import { away } from './workerRestart.ts';
import { backlog } from './backlog.ts';
import { churn } from './churn.ts';
import { events } from './events.ts';
import { finish } from './jobCompletion.ts';
import { fleet } from './fleet.ts';
import { job } from './job.ts';
import { lifecycle } from './lifecycle.ts';
import { queue } from './queue.ts';
import { recovery } from './recovery.ts';
import { scaleup } from './scaleup.ts';
import { shards } from './shards.ts';
import { steady } from './steadyLoad.ts';
import { supervisor } from './supervisor.ts';
import { waiting } from './idleRunners.ts';
import { webhook } from './webhook.ts';

/** All benchmarks, in the order in which they are listed. */
export const BENCHMARKS: readonly Benchmark[] = [
  lifecycle,
  scaleup,
  finish,
  waiting,
  churn,
  steady,
  queue,
  fleet,
  shards,
  events,
  backlog,
  recovery,
  away,
  job,
  supervisor,
  webhook,
];
