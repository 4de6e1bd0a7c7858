import { randomUUID } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import {
  RUNNER_SET_WORKFLOW,
  SET_ROUTING_MEMO,
  setWorkflowId,
  type SetRoutingInfo,
} from '../../../core/contract/index.ts';
import { down, kill, start, up, type LabState } from '../../lab/lab.ts';
import type { Figures, LocalBenchmark, LocalOptions, Measured } from '../benchmark.ts';
import { CpuAccount } from '../cpuAccount.ts';
import { deliveredJobEvents, offer, type Offered } from '../offeredDeliveries.ts';
import { SlowClients } from '../processes/slowClients.ts';
import { WorkerProcess } from '../processes/workerProcess.ts';
import { interruption } from '../interruption.ts';
import { percentile, roundTo } from '../statistics.ts';
import { WEBHOOK_SECRET } from '../world.ts';

const CLI = fileURLToPath(new URL('../../../cli/main.ts', import.meta.url));
const SLOW_CLIENTS = 2_000;
const ATTACK = { perSecond: 20, seconds: 30 } as const;
const FLOOD_PER_SECOND = 1_000;
/** Parts of the flood. Temporal is down during one of them. */
const SIXTHS = 6;

export const webhook: LocalBenchmark = {
  name: 'webhook',
  summary: `\`holdfast webhook\` on Temporal alone: ${SLOW_CLIENTS} untrusted clients that send 1 MiB slowly, then ${FLOOD_PER_SECOND} signed deliveries a second, with Temporal killed for a sixth of the time`,
  defaultRuns: 60,
  figures: {
    'attack.deliveries': {
      unit: 'deliveries',
      what: `signed deliveries, ${ATTACK.perSecond} a second, while ${SLOW_CLIENTS} untrusted clients send bodies of 1 MiB at 10 KiB a second each`,
    },
    'attack.refused': {
      unit: 'deliveries',
      what: 'signed deliveries that were not accepted',
      budget: { kind: 'max', limit: 0 },
    },
    'attack.p50Ms': { unit: 'ms', what: 'delivery sent → response, median' },
    'attack.p95Ms': { unit: 'ms', what: '… p95', budget: { kind: 'max', limit: 1_000 } },
    'attack.rssMiB': {
      unit: 'MiB',
      what: 'maximum resident memory of the process',
      budget: { kind: 'max', limit: 300 },
    },
    'flood.offeredPerSecond': {
      unit: '/s',
      what: 'signed deliveries sent: queued, started and ended of each job',
    },
    'flood.acceptedPerSecond': {
      unit: '/s',
      what: 'deliveries with the response 202, over the whole time',
      budget: { kind: 'min', limit: 500 },
    },
    'flood.comeAgain': { unit: 'deliveries', what: 'deliveries with the response 503' },
    'flood.otherwise': {
      unit: 'deliveries',
      what: 'deliveries with another response or none',
      budget: { kind: 'max', limit: 0 },
    },
    'flood.lost': {
      unit: 'deliveries',
      what: 'accepted deliveries that are not in the history of their set',
      budget: { kind: 'max', limit: 0 },
    },
    'flood.p95Ms': { unit: 'ms', what: 'delivery sent → accepted, p95' },
    'flood.rssMiB': { unit: 'MiB', what: 'maximum resident memory of the process' },
  },

  async run(options): Promise<Measured> {
    const { stateDir, keep, progress } = options;
    const lab = await up({ stateDir, temporal: true, kubernetes: false, progress });
    try {
      return await Promise.race([interruption(), measure(lab, options)]);
    } finally {
      if (!keep) await down({ stateDir, purge: true, progress });
    }
  },
};

async function measure(
  { stateDir, temporal }: LabState,
  { runs: seconds, progress }: LocalOptions,
): Promise<Measured> {
  if (temporal === undefined) throw new Error('the lab started without Temporal');
  const taskQueue = `bench-${randomUUID().slice(0, 8)}`;
  const logs = join(stateDir, 'logs');
  await mkdir(logs, { recursive: true });
  const connection = await Connection.connect({ address: temporal.address });
  const client = new Client({ connection, namespace: temporal.namespace });
  const env = {
    TEMPORAL_ADDRESS: temporal.address,
    TEMPORAL_NAMESPACE: temporal.namespace,
    HOLDFAST_TASK_QUEUE: taskQueue,
    HOLDFAST_WEBHOOK_SECRET: WEBHOOK_SECRET,
    HOLDFAST_HTTP_ADDRESS: '127.0.0.1:0',
    HOLDFAST_WEBHOOK_ADDRESS: '127.0.0.1:0',
  };
  const receiver = new WorkerProcess({
    env,
    logFile: join(logs, 'webhook.log'),
    main: CLI,
    args: ['webhook'],
  });
  try {
    await receiver.ready();
    const url = await receiver.webhook();
    const account = async (): Promise<CpuAccount> =>
      await CpuAccount.open(
        new Map([
          ['webhook', receiver.pid],
          ['benchmark', process.pid],
        ]),
      );
    await startListedSet(client, taskQueue);
    // Warm up the receiver.
    await offer({ url, set: taskQueue, firstJob: 1, perSecond: 50, seconds: 5 });

    progress(
      `${SLOW_CLIENTS} untrusted clients, and ${ATTACK.perSecond} signed deliveries a second`,
    );
    const slowClients = new SlowClients(url, SLOW_CLIENTS);
    const attackCpu = await account();
    let attack: Watched;
    try {
      while (slowClients.now.begun < SLOW_CLIENTS) await delay(100);
      attack = await watched(
        receiver,
        offer({ url, set: taskQueue, firstJob: 1_000_000, ...ATTACK }),
      );
    } finally {
      await slowClients.stop();
    }
    const attackDetails = { cores: await attackCpu.close(), slowClients: slowClients.now };

    progress(`${FLOOD_PER_SECOND} deliveries a second for ${seconds} s`);
    const floodCpu = await account();
    const offered = watched(
      receiver,
      offer({ url, set: taskQueue, firstJob: 2_000_000, perSecond: FLOOD_PER_SECOND, seconds }),
    );
    const outage = downFor(
      stateDir,
      (seconds * 1_000 * 2) / SIXTHS,
      (seconds * 1_000) / SIXTHS,
      progress,
    );
    const [flood, downMs] = await Promise.all([offered, outage]);
    const cores = await floodCpu.close();
    progress('reading the history of the set');
    const delivered = await deliveredJobEvents(client, setWorkflowId(taskQueue));
    const lost = flood.accepted.filter((key) => !delivered.has(key)).length;
    await client.workflow.getHandle(setWorkflowId(taskQueue)).terminate('the benchmark has ended');
    return {
      figures: figures(attack, flood, lost, seconds),
      details: {
        attack: attackDetails,
        flood: {
          cores,
          downMs,
          statuses: flood.statuses,
          longestMs: roundTo(percentile(flood.acceptedMs, 1)),
        },
      },
    };
  } finally {
    await receiver.stop();
    await connection.close();
  }
}

interface Watched extends Offered {
  readonly rssMiB: number;
}

function figures(attack: Watched, flood: Watched, lost: number, seconds: number): Figures {
  const sent = flood.accepted.length + flood.others;
  const comeAgain = flood.statuses[503] ?? 0;
  return {
    'attack.deliveries': attack.accepted.length + attack.others,
    'attack.refused': attack.others,
    'attack.p50Ms': roundTo(percentile(attack.acceptedMs, 0.5)),
    'attack.p95Ms': roundTo(percentile(attack.acceptedMs, 0.95)),
    'attack.rssMiB': roundTo(attack.rssMiB),
    'flood.offeredPerSecond': roundTo(sent / seconds),
    'flood.acceptedPerSecond': roundTo(flood.accepted.length / seconds),
    'flood.comeAgain': comeAgain,
    'flood.otherwise': flood.others - comeAgain,
    'flood.lost': lost,
    'flood.p95Ms': roundTo(percentile(flood.acceptedMs, 0.95)),
    'flood.rssMiB': roundTo(flood.rssMiB),
  };
}

/** Returns the responses, with the maximum memory of the process in that time. */
async function watched(receiver: WorkerProcess, offering: Promise<Offered>): Promise<Watched> {
  let rssMiB = 0;
  let ended = false;
  const watching = (async () => {
    for (; !ended; await delay(250)) rssMiB = Math.max(rssMiB, await receiver.rssMiB());
  })();
  const offered = await offering.finally(() => (ended = true));
  await watching;
  return { ...offered, rssMiB };
}

/**
 * Stops Temporal for a time.
 * @returns time until Temporal responded again (ms)
 */
async function downFor(
  stateDir: string,
  afterMs: number,
  ms: number,
  progress: (line: string) => void,
): Promise<number> {
  await delay(afterMs);
  const downAt = performance.now();
  await kill(stateDir, 'temporal');
  progress('Temporal is down');
  await delay(downAt + ms - performance.now());
  await start(stateDir, 'temporal');
  const downMs = roundTo(performance.now() - downAt);
  progress(`Temporal is up again after ${downMs} ms`);
  return downMs;
}

/** Starts a set without a worker, so that all its events stay in its history. */
async function startListedSet(client: Client, taskQueue: string): Promise<void> {
  const routing: SetRoutingInfo = {
    labels: [taskQueue],
    scope: 'acme',
    scopeKind: 'organization',
    ciServer: 'github',
  };
  const workflowId = setWorkflowId(taskQueue);
  await client.workflow.start(RUNNER_SET_WORKFLOW, {
    taskQueue,
    workflowId,
    args: [],
    memo: { [SET_ROUTING_MEMO]: routing },
  });
  while ((await client.workflow.count(`WorkflowId = '${workflowId}'`)).count === 0)
    await delay(100);
}
