import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { WithStartWorkflowOperation } from '@temporalio/client';
import { RUNNER_WORKFLOW, drainUpdate, type RunnerInput } from '../../core/contract/index.ts';
import type { HoldfastWorld } from '../support/holdfastWorld.ts';
import { SHORT_INTERVALS } from '../support/shortIntervals.ts';
import { describeWithLab } from '../support/lab.ts';
import { memoryWorld } from '../support/memoryWorld.ts';
import type { FakeCiServer } from '../support/fakeCiServer.ts';
import type { FakeCompute } from '../support/fakeCompute.ts';

/**
 * The SDK rejects an update without a handler ("No registered handler"), so a workflow must
 * register its handlers in its first workflow task.
 */
await describeWithLab('an update in the first workflow task', { temporal: true }, (lab) => {
  let compute: FakeCompute;
  let ci: FakeCiServer;
  let world: HoldfastWorld;

  beforeEach(async () => {
    ({ compute, ci, world } = await memoryWorld(lab));
  });
  afterEach(async () => await world.close());

  function operation<T>(
    type: string,
    workflowId: string,
    input: T,
  ): WithStartWorkflowOperation<(input: T) => Promise<unknown>> {
    return new WithStartWorkflowOperation<(input: T) => Promise<unknown>>(type, {
      workflowId,
      taskQueue: world.taskQueue,
      args: [input],
      workflowIdConflictPolicy: 'FAIL',
    });
  }

  test('drains a runner before its admission, and no object remains', async () => {
    const workflowId = `runner-${randomUUID().slice(0, 8)}`;
    const input: RunnerInput = { organization: 'acme', intervals: SHORT_INTERVALS };
    const accepted = await world.client.workflow.executeUpdateWithStart(drainUpdate, {
      startWorkflowOperation: operation(RUNNER_WORKFLOW, workflowId, input),
      args: [{ reason: 'too early' }],
    });
    expect(accepted).toEqual({ accepted: true, phase: 'Requested' });
    expect(await world.client.workflow.getHandle(workflowId).result()).toMatchObject({
      outcome: 'succeeded',
    });
    expect({
      pods: compute.pods.size,
      secrets: compute.secrets.size,
      registrations: ci.registrations.size,
    }).toEqual({ pods: 0, secrets: 0, registrations: 0 });
  });
});
