import type { ChaosEnvironment } from '../world.ts';
import type { Fault } from './fault.ts';

/** To either side. */
const MAX_OFF_MS = 600_000;

const one = ({ workers }: ChaosEnvironment, pick: number): number[] => [
  Math.floor(pick * workers.count),
];
const all = ({ workers }: ChaosEnvironment): number[] =>
  Array.from({ length: workers.count }, (_, number) => number);

const takenDown =
  (
    whom: (world: ChaosEnvironment, pick: number) => number[],
    signal: 'SIGKILL' | 'SIGTERM',
  ): Fault =>
  async (world, { pick }) => {
    const numbers = whom(world, pick);
    await Promise.all(numbers.map(async (number) => await world.workers.stop(number, signal)));
    return {
      whom: `worker ${numbers.join(' and ')}`,
      end: () => numbers.forEach((number) => world.workers.start(number)),
    };
  };

const halted =
  (whom: (world: ChaosEnvironment, pick: number) => number[]): Fault =>
  (world, { pick }) => {
    const numbers = whom(world, pick);
    for (const number of numbers) world.workers.signal(number, 'SIGSTOP');
    return {
      whom: `worker ${numbers.join(' and ')}`,
      end: () => numbers.forEach((number) => world.workers.signal(number, 'SIGCONT')),
    };
  };

export const workerFaults = {
  worker_killed: takenDown(one, 'SIGKILL'),
  worker_terminated: takenDown(one, 'SIGTERM'),
  worker_stopped: halted(one),
  workers_killed: takenDown(all, 'SIGKILL'),
  workers_stopped: halted(all),
  clock_stepped: async (world, { pick }) => {
    const number = Math.floor(pick * world.workers.count);
    // What is left of the pick after the worker was chosen by it.
    const offsetMs = Math.round((((pick * world.workers.count) % 1) * 2 - 1) * MAX_OFF_MS);
    await world.workers.stepClock(number, offsetMs);
    return {
      whom: `worker ${number}, by ${Math.round(offsetMs / 1_000)} s`,
      end: async () => await world.workers.stepClock(number, 0),
    };
  },
} satisfies Record<string, Fault>;
