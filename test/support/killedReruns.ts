/**
 * Reruns whose worker is killed during a request: the one that reruns the job, or the one that ends
 * its run early. Either before GitHub has received it, or after GitHub has accepted it and before
 * the worker gets the response. Temporal is real, GitHub is simulated, and workers are processes.
 */
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import { DefaultLogger, bundleWorkflowCode } from '@temporalio/worker';
import { runnerHash } from '../../activities/compute/naming.ts';
import {
  RUNNER_WORKFLOW,
  rerunWorkflowId,
  type RerunInput,
  type RerunResult,
} from '../../core/contract/index.ts';
import { runnerName } from '../../core/domain/runnerName.ts';
import { Fleet } from '../../tools/simulator/fleet.ts';
import { startSimulator, type Simulator } from '../../tools/simulator/simulator.ts';
import { workflowInterceptorsPath } from '../../worker/plugin/plugin.ts';
import { ciServerOf } from './ciServers.ts';
import { KillingProxy } from './killingProxy.ts';
import { terminateAll } from './terminateAll.ts';
import { startWorkerProcess } from './workerProcess.ts';

const WORKER = fileURLToPath(new URL('rerunWorker/main.ts', import.meta.url));
const WORKFLOWS = fileURLToPath(new URL('rerunWorker/workflows.ts', import.meta.url));
const TOKEN = 'ghp_simulator';
const ORGANIZATION = 'acme';
const LONG_MS = 3_600_000;
/** Requests at which the worker is killed. */
const REQUESTS = {
  rerun: /\/actions\/jobs\/\d+\/rerun$/,
  forceCancel: /\/actions\/runs\/\d+\/force-cancel$/,
};
/** Time after which GitHub gives up a job, by the request that it takes (ms). */
const LEASE_MS = { rerun: 500, forceCancel: 600_000 };
type Request = keyof typeof REQUESTS;

/** Result of a job whose rerun was interrupted. */
export interface KilledRerun {
  readonly result: RerunResult;
  /** Attempts in which the job ran or waits to run. */
  readonly attempts: readonly number[];
}

/**
 * Loses one job after the other in each of several lanes, and kills the lane's worker during the
 * first rerun request of each.
 */
export async function killReruns(
  temporal: string,
  { lanes, rounds, at = 'rerun' }: { lanes: number; rounds: number; at?: Request },
): Promise<KilledRerun[]> {
  process.env['RERUN_TOKEN'] = TOKEN;
  const world = await World.open(temporal, at);
  try {
    const all = await Promise.all(
      Array.from({ length: lanes }, async (_none, lane) => await world.lane(lane, rounds)),
    );
    return all.flat();
  } finally {
    await world.close();
  }
}

class World {
  readonly #temporal: string;
  readonly #at: Request;
  readonly #connection: Connection;
  readonly #client: Client;
  readonly #simulator: Simulator;
  readonly #fleet: Fleet;
  readonly #folder: string;
  readonly #github: ReturnType<typeof ciServerOf>;
  readonly #lanes: KillingProxy[] = [];

  private constructor(
    temporal: string,
    at: Request,
    connection: Connection,
    simulator: Simulator,
    folder: string,
  ) {
    this.#temporal = temporal;
    this.#at = at;
    this.#connection = connection;
    this.#client = new Client({ connection });
    this.#simulator = simulator;
    this.#fleet = new Fleet(simulator.url);
    this.#folder = folder;
    const token = { type: 'pat', tokenEnv: 'RERUN_TOKEN' };
    this.#github = ciServerOf({ ...token, apiUrl: simulator.url });
  }

  static async open(temporal: string, at: Request): Promise<World> {
    const simulator = await startSimulator({
      tokens: [{ token: TOKEN, name: 'pat' }],
      leaseMs: LEASE_MS[at],
      offlineAfterMs: 200,
    });
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-reruns-'));
    const { code } = await bundleWorkflowCode({
      logger: new DefaultLogger('ERROR'),
      workflowsPath: WORKFLOWS,
      workflowInterceptorModules: [workflowInterceptorsPath()],
    });
    await writeFile(join(folder, 'workflows.cjs'), code);
    const connection = await Connection.connect({ address: temporal });
    return new World(temporal, at, connection, simulator, folder);
  }

  async lane(index: number, rounds: number): Promise<KilledRerun[]> {
    const taskQueue = `reruns-${randomUUID().slice(0, 8)}`;
    const lane = await KillingProxy.start(this.#simulator.url, (apiUrl) =>
      startWorkerProcess({ RERUN_TOKEN: TOKEN }, [
        WORKER,
        this.#temporal,
        taskQueue,
        apiUrl,
        join(this.#folder, 'workflows.cjs'),
      ]),
    );
    this.#lanes.push(lane);
    const done: KilledRerun[] = [];
    try {
      for (let round = 0; round < rounds; round++) {
        const isBefore = (index + round) % 2 === 0;
        done.push(await this.#round(lane, taskQueue, isBefore));
      }
    } finally {
      await terminateAll(this.#client, taskQueue);
    }
    return done;
  }

  async #round(lane: KillingProxy, taskQueue: string, isBefore: boolean): Promise<KilledRerun> {
    const workflowId = `runner-${randomUUID().slice(0, 8)}`;
    const { workflow } = this.#client;
    const handle = await workflow.start(RUNNER_WORKFLOW, { workflowId, taskQueue });
    const hash = runnerHash({ workflowId, firstRunId: handle.firstExecutionRunId });
    const name = runnerName(workflowId.slice('runner-'.length), hash, 1);
    const when = isBefore ? 'before' : 'after';
    const killed = lane.kill({ method: 'POST', path: REQUESTS[this.#at], when });
    const { id, runId } = await this.#loseJob(name);
    const input: RerunInput = {
      organization: ORGANIZATION,
      runnerName: name,
      cause: 'node_lost',
      job: { id: String(id), repository: `${ORGANIZATION}/app` },
      perRun: 1,
      perDay: 1_000,
      ...(this.#at === 'forceCancel' && { forceCancelAfter: '1s' }),
    };
    await handle.signal('lost', input);
    await handle.result();
    await killed;
    // GitHub would accept another rerun, so the next worker itself must detect that this one has happened.
    this.#endReruns(runId);
    const result = (await workflow.getHandle(rerunWorkflowId(name)).result()) as RerunResult;
    const attempts = this.#endReruns(runId);
    return {
      result,
      attempts,
    };
  }

  /** @returns the attempts of the job so far */
  #endReruns(runId: number): number[] {
    const attempts = this.#simulator.jobs().filter(({ run_id }) => run_id === runId);
    for (const { id, run_attempt: attempt, status } of attempts)
      if (attempt > 1 && status === 'queued') this.#simulator.cancelJob(id);
    return attempts.map(({ run_attempt: attempt }) => attempt);
  }

  /** Kills a runner while its job runs. GitHub ends the job when its lease expires. */
  async #loseJob(name: string): Promise<{ id: number; runId: number }> {
    const { env } = await this.#github.server.register({
      scope: { kind: 'organization', name: ORGANIZATION },
      name,
      labels: [name],
      group: 'default',
      ephemeral: true,
      mode: 'jit',
    });
    const runner = this.#fleet.start(env);
    const { id, run_id: runId } = this.#simulator.queueJob({
      repo: `${ORGANIZATION}/app`,
      labels: [name],
      sleepMs: LONG_MS,
    });
    await this.#simulator.waitForJob(id, 'in_progress');
    runner.kill();
    return { id, runId };
  }

  async close(): Promise<void> {
    await Promise.all(this.#lanes.map(async (lane) => await lane.close()));
    this.#fleet.close();
    await this.#github.close();
    await this.#simulator.stop();
    await this.#connection.close();
    await rm(this.#folder, { recursive: true, force: true });
  }
}
