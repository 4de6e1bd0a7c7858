import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { SimulatedJob } from '../../tools/simulator/types.ts';
import { scaleUpdate, setTemplateUpdate } from '../../core/contract/index.ts';
import { describeWithLab } from '../support/lab.ts';
import { randomOf, randomSeed } from '../support/random.ts';
import { holdIfThere } from '../support/setRun.ts';
import { FleetWorld, type FleetSet } from './fleetWorld.ts';

const SETS = 20;
const STEPS = 14;

/** One set under random hands: its jobs end by themselves, each after its own time. */
class RandomLife {
  readonly set: FleetSet;
  readonly #ephemeral: boolean;
  readonly #random: (below: number) => number;
  readonly jobs: SimulatedJob[] = [];

  constructor(set: FleetSet, ephemeral: boolean, random: (below: number) => number) {
    this.set = set;
    this.#ephemeral = ephemeral;
    this.#random = random;
  }

  async step(): Promise<void> {
    const choice = this.#random(10);
    const { handle } = this.set;
    if (choice <= 4) this.jobs.push(this.set.queueJob({ sleepMs: 200 + this.#random(4_000) }));
    else if (choice <= 6) await handle.executeUpdate(scaleUpdate.name, { args: [{ minIdle: this.#random(3), max: 2 + this.#random(3) }] });
    else if (choice === 7) await handle.executeUpdate(setTemplateUpdate.name, { args: [this.set.template({ ephemeral: this.#ephemeral, env: { VERSION: String(this.#random(3)) } })] });
    else if (choice === 8) await this.#hold();
    else await new Promise((resolve) => setTimeout(resolve, this.#random(1_500)));
  }

  async #hold(): Promise<void> {
    const { runners } = await this.set.reaches('an answer', () => true);
    const some = runners[this.#random(Math.max(1, runners.length))];
    if (some !== undefined) await holdIfThere(this.set.handle, { runner: some.workflowId });
  }

  /** Nothing more is asked for. */
  async quieten(): Promise<void> {
    const { holds } = await this.set.reaches('an answer', () => true);
    for (const runner of holds) await holdIfThere(this.set.handle, { runner, release: true });
    await this.set.handle.executeUpdate(scaleUpdate.name, { args: [{ minIdle: 1, max: 4 }] });
  }
}

/** The pure decisions have a property test of their own; here their consequences are real. */
await describeWithLab('fleets under random hands', { temporal: true, nodes: 'kwok' }, (lab) => {
  let fleet: FleetWorld;

  beforeEach(async () => {
    fleet = await FleetWorld.open(lab);
  });
  afterEach(async () => {
    await fleet.close();
  });

  test(`${SETS} sets scaled, rolled out and held at random under jobs, a worker killed in between: no busy runner is touched, every job runs once, nothing is left`, async () => {
    const seed = randomSeed();
    const lives = await Promise.all(
      Array.from({ length: SETS }, async (_none, index) => {
        const ephemeral = index % 2 === 0;
        const waits = { scaleDownDelay: '1s', recreationGuard: '5s', queueCheck: '5s', intervals: { relist: '5s', firstRetry: '300ms', longestRetry: '2s', guardLook: '1s' } };
        const set = await fleet.startSet({ minIdle: 1, max: 4, template: { ephemeral }, ...waits });
        // Before its declaration has been checked it takes no updates.
        await set.reaches('an answer', () => true);
        return new RandomLife(set, ephemeral, randomOf(seed + index));
      }),
    );
    const steps = async (count: number): Promise<void> => void (await Promise.all(lives.map(async (life) => {
      for (let i = 0; i < count; i++) await life.step();
    })));
    await steps(STEPS);
    await fleet.replace('other');
    await steps(STEPS);
    await Promise.all(lives.map(async (life) => await life.quieten()));

    const jobs = (): SimulatedJob[] => lives.flatMap((life) => life.jobs.map(({ id }) => fleet.world.simulator.job(id) as SimulatedJob));
    await fleet.until('every job to be done', () => jobs().every(({ status }) => status === 'completed'), () => JSON.stringify(jobs().filter(({ status }) => status !== 'completed')));
    // A runner that is stopped under its job takes the job with it.
    expect(jobs().filter(({ conclusion, assignments }) => conclusion !== 'success' || assignments !== 1)).toEqual([]);
    for (const { set } of lives) {
      await set.reaches('one idle runner of its template', ({ runners, generation, jobs: { queued, assigned } }) => queued + assigned === 0 && runners.map((runner) => `${runner.state} ${runner.generation}`).join() === `idle ${generation}`);
    }
    await Promise.all(lives.map(async ({ set }) => await set.end()));
    await fleet.leavesNothing();
    expect(await fleet.notCompleted()).toBe(0);
  }, 600_000);
});
