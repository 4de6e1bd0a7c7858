import { expect } from '@jest/globals';
import type { LabState } from '../../tools/lab/lab.ts';
import { FakeCiServer } from './fakeCiServer.ts';
import { FakeCompute } from './fakeCompute.ts';
import { holdfastWorld, type HoldfastWorld } from './holdfastWorld.ts';

/** The real Temporal server and workflows, with a cluster and a CI server in memory. */
export interface MemoryWorld<Ci extends FakeCiServer = FakeCiServer> {
  readonly compute: FakeCompute;
  readonly ci: Ci;
  readonly world: HoldfastWorld;
}

export async function memoryWorld(lab: LabState): Promise<MemoryWorld>;
export async function memoryWorld<Ci extends FakeCiServer>(
  lab: LabState,
  ci: Ci,
): Promise<MemoryWorld<Ci>>;
export async function memoryWorld(lab: LabState, ci = new FakeCiServer()): Promise<MemoryWorld> {
  const compute = new FakeCompute();
  return {
    compute,
    ci,
    world: await holdfastWorld(lab.temporal?.address ?? '', { compute, ciServers: ci }),
  };
}

/** Checks that no object of any runner is left, and that no pod was deleted during a job. */
export function expectNothingLeft({ compute, ci }: Pick<MemoryWorld, 'compute' | 'ci'>): void {
  expect({
    pods: compute.pods.size,
    secrets: compute.secrets.size,
    registrations: ci.registrations.size,
  }).toEqual({ pods: 0, secrets: 0, registrations: 0 });
  expect(compute.deletions.filter(({ underJob }) => underJob)).toEqual([]);
}
