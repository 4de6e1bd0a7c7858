/** What takes minutes on a real Gitea with its official runner. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { querySetStatus } from '../../activities/runnerSet/querySetStatus.ts';
import { GiteaWorld } from '../support/giteaWorld.ts';
import { describeWithLab } from '../support/lab.ts';
import { until } from '../support/until.ts';

const NEEDS = { gitea: true, temporal: true, kubernetes: false };
const JOBS = 50;
/** The receiver is down for these jobs. */
const DOWN = { from: 20, to: 30 };
/** Time between two jobs (ms). */
const PACE_MS = 1_500;

/** Times at which the first event of each action of a job arrived, by job (ms since the epoch). */
class Recorder {
  readonly #server: Server;
  readonly #first = new Map<string, number>();

  constructor() {
    this.#server = createServer((request, response) => {
      const at = Date.now();
      void buffer(request).then((body) => {
        const { action, workflow_job: job } = JSON.parse(body.toString()) as {
          action: string;
          workflow_job: { id: number };
        };
        const key = `${job.id} ${action}`;
        if (!this.#first.has(key)) this.#first.set(key, at);
        response.writeHead(204).end();
      });
    });
  }

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  /** Time from the event `queued` of a job to its `in_progress` (ms). */
  startMs(id: number): number {
    const [queued = NaN, started = NaN] = ['queued', 'in_progress'].map((action) =>
      this.#first.get(`${id} ${action}`),
    );
    return started - queued;
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

function percentiles(values: readonly number[]): string {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.ceil(sorted.length * share) - 1] ?? NaN;
  return `p50 ${at(0.5)}, p95 ${at(0.95)}, of ${sorted.length}`;
}

await describeWithLab('Gitea for several minutes', NEEDS, (lab) => {
  let world: GiteaWorld;
  beforeEach(async () => void (world = await GiteaWorld.open(lab)));
  afterEach(async () => await world.close());

  test('fifty jobs of a set whose receiver is down for ten of them: each runs once, and nothing is left', async () => {
    const recorder = new Recorder();
    await world.addHook(await recorder.start());
    let worker = world.startWorker();
    await worker.started();
    const set = await world.startSet({ max: 8 });
    const jobs: number[] = [];
    for (let index = 0; index < JOBS; index++) {
      if (index === DOWN.from) worker.kill('SIGKILL');
      if (index === DOWN.to) worker = world.startWorker();
      jobs.push((await world.queueJob()).id);
      await delay(PACE_MS);
    }
    for (const id of jobs)
      expect(await world.waitForJob(id, 'completed')).toMatchObject({ conclusion: 'success' });
    const statusOf = async (): ReturnType<typeof querySetStatus> =>
      await querySetStatus(world.client, set.workflowId);
    await until('the set to be at rest', async () => (await statusOf()).runners.length === 0);
    expect((await statusOf()).jobs).toMatchObject({ queued: 0, running: 0, completedTotal: JOBS });
    expect(await world.gitea.runners()).toEqual([]);
    const isMissed = (index: number): boolean => index >= DOWN.from && index < DOWN.to;
    const startMs = (missed: boolean): number[] =>
      jobs.filter((_id, index) => isMissed(index) === missed).map((id) => recorder.startMs(id));
    process.stderr.write(
      `figures: ms from queued to started: by webhook ${percentiles(startMs(false))}; receiver down ${percentiles(startMs(true))}\n`,
    );
    recorder.stop();
    await set.terminate();
  }, 900_000);

  test('a canceled run: its job continues, and the runner ends by itself afterwards', async () => {
    await world.startWorker().started();
    const runner = await world.startRunner();
    await world.reaches(runner, 'Idle');
    const { job, finish } = await world.heldJob();
    await world.reaches(runner, 'Busy');
    await world.cancelRun(job.run_id);
    expect(await world.waitForJob(job.id, 'completed')).toMatchObject({ conclusion: 'cancelled' });
    await until(
      'Gitea to remove the registration',
      async () => (await world.gitea.runners()).length === 0,
    );
    await world.reaches(runner, 'Busy');
    await finish();
    expect(await runner.result()).toMatchObject({ outcome: 'succeeded', attempt: 1 });
    expect(await world.gitea.runners()).toEqual([]);
  }, 300_000);
});
