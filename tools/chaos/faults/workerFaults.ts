import type { ChaosEnvironment } from '../world.ts';
import type { Fault } from './fault.ts';

/** Maximum offset of a clock, ahead or behind (ms). */
const MAX_OFFSET_MS = 600_000;

const one = ({ workers }: ChaosEnvironment, pick: number): number[] => [
  Math.floor(pick * workers.count),
];
const all = ({ workers }: ChaosEnvironment): number[] =>
  Array.from({ length: workers.count }, (_, number) => number);

const stopWorkers =
  (
    chooseWorkers: (world: ChaosEnvironment, pick: number) => number[],
    signal: 'SIGKILL' | 'SIGTERM',
  ): Fault =>
  async (world, { pick }) => {
    const numbers = chooseWorkers(world, pick);
    await Promise.all(numbers.map(async (number) => await world.workers.stop(number, signal)));
    return {
      target: `worker ${numbers.join(' and ')}`,
      end: () => numbers.forEach((number) => world.workers.start(number)),
    };
  };

const freezeWorkers =
  (chooseWorkers: (world: ChaosEnvironment, pick: number) => number[]): Fault =>
  (world, { pick }) => {
    const numbers = chooseWorkers(world, pick);
    for (const number of numbers) world.workers.signal(number, 'SIGSTOP');
    return {
      target: `worker ${numbers.join(' and ')}`,
      end: () => numbers.forEach((number) => world.workers.signal(number, 'SIGCONT')),
    };
  };

/** Faults of worker processes. */
export const workerFaults = {
  worker_killed: stopWorkers(one, 'SIGKILL'),
  worker_terminated: stopWorkers(one, 'SIGTERM'),
  worker_stopped: freezeWorkers(one),
  workers_killed: stopWorkers(all, 'SIGKILL'),
  workers_stopped: freezeWorkers(all),
  clock_stepped: async (world, { pick }) => {
    const number = Math.floor(pick * world.workers.count);
    // The integer part of the product chooses the worker, its fraction the offset.
    const offsetMs = Math.round((((pick * world.workers.count) % 1) * 2 - 1) * MAX_OFFSET_MS);
    await world.workers.stepClock(number, offsetMs);
    return {
      target: `worker ${number}, by ${Math.round(offsetMs / 1_000)} s`,
      end: async () => await world.workers.stepClock(number, 0),
    };
  },
} satisfies Record<string, Fault>;
