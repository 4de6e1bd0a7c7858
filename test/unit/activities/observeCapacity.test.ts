import { expect, test } from '@jest/globals';
import { MockActivityEnvironment } from '@temporalio/testing';
import { observeCapacity } from '../../../activities/runnerSet/observeCapacity.ts';
import type { PodView } from '../../../core/domain/pod.ts';
import { runnerWorkflowId } from '../../../core/domain/setRunnerNames.ts';
import { FakeCompute } from '../../support/fakeCompute.ts';

const MESSAGE =
  '0/3 nodes are available: 1 node(s) had untolerated taint {a: b}, 2 Insufficient cpu. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.';
const id = (n: number, set = 'gpu'): string => runnerWorkflowId(set, String(n).padStart(10, 'a'));

async function observed(
  pods: readonly (Partial<PodView> & { workflowId: string })[],
  runners: readonly string[],
  quota?: string,
): ReturnType<typeof observeCapacity> {
  const compute = new FakeCompute();
  compute.quota = quota;
  for (const [index, pod] of pods.entries())
    compute.pods.set(`p${index}`, {
      name: `p${index}`,
      uid: `u${index}`,
      scheduled: false,
      createdAt: '',
      ended: false,
      deleted: false,
      terminating: false,
      ...pod,
    });
  return (await new MockActivityEnvironment().run(
    async () => await observeCapacity({ compute }, { set: 'gpu', runners }),
  )) as Awaited<ReturnType<typeof observeCapacity>>;
}

test("counts the set's pods with a node, and reports why the others have none", async () => {
  const result = await observed(
    [
      { workflowId: id(1), scheduled: true },
      { workflowId: id(2), scheduled: true, ended: true },
      { workflowId: id(3), unschedulable: MESSAGE },
      { workflowId: id(4) },
      { workflowId: id(5), scheduled: true },
      { workflowId: id(1, 'gpu-large'), scheduled: true },
    ],
    [id(3), id(4), id(5), id(6)],
  );
  expect(result.placed).toBe(2);
  expect(result.unplaced).toEqual([
    {
      workflowId: id(3),
      reason: 'pods unschedulable (node(s) had untolerated taint {a: b}, Insufficient cpu)',
    },
    { workflowId: id(4) },
    { workflowId: id(6) },
  ]);
});

test('a runner without a pod counts as without a node if a quota is exhausted', async () => {
  const { unplaced } = await observed(
    [{ workflowId: id(1) }],
    [id(1), id(2)],
    'quota ci used up (pods)',
  );
  expect(unplaced).toEqual([
    { workflowId: id(1) },
    { workflowId: id(2), reason: 'quota ci used up (pods)' },
  ]);
});
