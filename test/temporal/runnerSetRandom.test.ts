/**
 * What a set decides under a random life is played in a model (unit/workflows/runnerSet.state.property). Here it is carried out: commands, signals,
 * runners that come and go, restarts of the worker and continue-as-new meet in any order, and every history replays.
 */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { describeWithLab } from '../support/lab.ts';
import { memoryWorld } from '../support/memoryWorld.ts';
import type { FakeCiServer } from '../support/fakeCiServer.ts';
import type { FakeCompute } from '../support/fakeCompute.ts';
import type { HoldfastWorld } from '../support/holdfastWorld.ts';
import { randomOf, randomSeed } from '../support/random.ts';
import { unreplayable } from '../support/replays.ts';
import { SetRun } from '../support/setRun.ts';
import { until } from '../support/until.ts';

const SETS = 8;
const STEPS = 7;

await describeWithLab('sets with random events', { temporal: true }, (lab) => {
  let compute: FakeCompute;
  let ci: FakeCiServer;
  let world: HoldfastWorld;

  beforeEach(async () => {
    ({ compute, ci, world } = await memoryWorld(lab));
  });
  afterEach(async () => await world.close());

  /** One set and its jobs. */
  class Life {
    readonly set: SetRun;
    readonly ephemeral: boolean;
    /** A label of its own: equal sets would take jobs from each other. */
    readonly #own: string;
    readonly #random: (below: number) => number;
    readonly #queue: number[] = [];
    readonly #running = new Map<string, number>();
    jobs = 0;

    constructor(set: SetRun, ephemeral: boolean, own: string, random: (below: number) => number) {
      this.set = set;
      this.#own = own;
      this.ephemeral = ephemeral;
      this.#random = random;
    }

    /** Pods in which a registered runner listens or works. */
    #runners(): { pod: string; workflowId: string; runnerName: string }[] {
      const up = [...compute.pods.values()].filter(
        (pod) =>
          pod.workflowId.startsWith(`runner-${this.set.name}-`) &&
          pod.startedAt !== undefined &&
          !pod.ended &&
          !pod.terminating,
      );
      return up.flatMap(({ name: pod, workflowId }) => {
        const base = workflowId.slice('runner-'.length);
        const registration = [...ci.registrations.values()].find(({ name }) =>
          name.startsWith(base),
        );
        return registration === undefined
          ? []
          : [{ pod, workflowId, runnerName: registration.name }];
      });
    }

    async queueJob(): Promise<void> {
      const jobId = ++this.jobs;
      this.#queue.push(jobId);
      await this.set.tell(this.set.event('queued', jobId));
    }

    /** As the CI server does: any registered runner that is idle. */
    async takeJob(): Promise<void> {
      const free = this.#runners().filter(({ pod }) => !compute.jobs.has(pod));
      const runner = free[this.#random(Math.max(1, free.length))];
      const jobId = this.#queue[0];
      if (runner === undefined || jobId === undefined) return;
      this.#queue.shift();
      this.#running.set(runner.pod, jobId);
      this.set.startJob(runner);
      await this.set.tell(this.set.event('in_progress', jobId, runner.runnerName));
    }

    async finishJob(): Promise<void> {
      const runner = this.#runners().find(({ pod }) => this.#running.has(pod));
      if (runner === undefined) return;
      const jobId = this.#running.get(runner.pod) ?? 0;
      this.#running.delete(runner.pod);
      this.set.endJob(runner, this.ephemeral);
      await this.set.tell(this.set.event('completed', jobId, runner.runnerName));
    }

    async step(): Promise<void> {
      const { runners } = await this.set.status();
      const some = runners[this.#random(Math.max(1, runners.length))];
      const choice = this.#random(10);
      this.set.bringUp();
      if (choice <= 2) await this.queueJob();
      else if (choice <= 4) await this.takeJob();
      else if (choice <= 6) await this.finishJob();
      else if (choice === 7)
        await this.set.command({
          command: 'scale',
          minIdle: this.#random(3),
          max: 3 + this.#random(3),
        });
      else if (choice === 8)
        await this.set.command({
          command: 'setTemplate',
          template: SetRun.template({
            ephemeral: this.ephemeral,
            labels: ['linux', this.#own, `v${this.#random(2)}`],
          }),
        });
      else if (some !== undefined) await this.set.holdIfThere(some.workflowId);
    }

    /** Two hands at a time, so that what they do meets. */
    async steps(count: number): Promise<void> {
      for (let i = 0; i < count; i++) await Promise.all([this.step(), this.step()]);
    }

    /** Nothing more is asked for; what was is served. */
    async quieten(): Promise<void> {
      const { holds } = await this.set.status();
      for (const runner of holds) await this.set.holdIfThere(runner, true);
      await this.set.command({ command: 'scale', minIdle: 1, max: 5 });
      await until(
        `${this.set.name} to have served ${this.jobs} jobs`,
        async () => {
          this.set.bringUp();
          await this.takeJob();
          await this.finishJob();
          const { jobs } = await this.set.status();
          return (
            this.#queue.length === 0 &&
            this.#running.size === 0 &&
            jobs.completedTotal === this.jobs
          );
        },
        () =>
          JSON.stringify({
            queue: this.#queue,
            running: [...this.#running],
            runners: this.#runners(),
          }),
        120_000,
      );
    }
  }

  test(`${SETS} sets, two restarts of the worker and continue-as-new: every job runs once, none is killed, and each set becomes stable`, async () => {
    const seed = randomSeed();
    const lives = await Promise.all(
      Array.from({ length: SETS }, async (_none, index) => {
        const ephemeral = index % 2 === 0;
        const own = `own-${index}`;
        const set = await SetRun.start(
          { world, compute, ci },
          {
            minIdle: 1,
            max: 4,
            scaleDownDelay: '1s',
            recreationGuard: '2s',
            queueCheck: '0s',
            template: { ephemeral, labels: ['self-hosted', 'linux', own] } as never,
          },
        );
        await set.reaches('its admission', () => true);
        return new Life(set, ephemeral, own, randomOf(seed + index));
      }),
    );
    const steps = async (): Promise<void> =>
      void (await Promise.all(lives.map(async (life) => await life.steps(STEPS))));
    const restart = async (): Promise<void> => {
      await world.suspend();
      await world.resume();
      await Promise.all(
        lives.map(async ({ set }) => await set.reaches('an answer', () => true, 60_000)),
      );
    };
    await steps();
    await restart();
    for (const { set } of lives.slice(0, 4)) {
      const noise = Array.from({ length: 2_000 }, () => set.event('completed', 1_000_000));
      for (let i = 0; i < 8; i++) await set.tell(...noise);
    }
    for (const life of lives.slice(0, 4)) life.jobs++;
    await steps();
    await restart();
    await Promise.all(lives.map(async (life) => await life.quieten()));
    for (const { set } of lives) await set.comesTo({ idle: 1 });
    let renewed = 0;
    for (const { set } of lives.slice(0, 4)) {
      const { raw } = await set.handle.describe();
      if (raw.workflowExecutionInfo?.firstRunId !== raw.workflowExecutionInfo?.execution?.runId)
        renewed++;
    }
    expect(renewed).toBe(4);
    expect(compute.deletions.filter((deletion) => deletion.underJob)).toEqual([]);
    await Promise.all(lives.map(async ({ set }) => await set.end()));
    expect(
      await unreplayable(
        world.client,
        lives.map(({ set }) => set.handle.workflowId),
      ),
    ).toEqual([]);
    expect({
      pods: compute.pods.size,
      secrets: compute.secrets.size,
      registrations: ci.registrations.size,
    }).toEqual({ pods: 0, secrets: 0, registrations: 0 });
  }, 300_000);
});
