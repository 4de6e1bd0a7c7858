import { availableParallelism, loadavg } from 'node:os';

/** Whether more processes want to run than the machine has cores (average of the last minute). */
export function isOverloaded(): boolean {
  const [load = 0] = loadavg();
  return load > availableParallelism();
}
