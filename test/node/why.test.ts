/** `holdfast why` about a pod for which the real scheduler finds no node. */
import { expect } from '@jest/globals';
import type { WhyAnswer } from '../../core/contract/index.ts';
import { runCli } from '../support/cli.ts';
import { ClusterWorld } from '../support/clusterWorld.ts';
import { describeWithLab } from '../support/lab.ts';
import { together, type Scenario } from '../support/together.ts';
import { until } from '../support/until.ts';

async function why(
  { settings, taskQueue }: ClusterWorld,
  id: string,
  kubeconfig: string,
): Promise<WhyAnswer> {
  const env = {
    TEMPORAL_ADDRESS: settings['TEMPORAL_ADDRESS'] ?? '',
    HOLDFAST_TASK_QUEUE: taskQueue,
    HOLDFAST_KUBECONFIG: kubeconfig,
  };
  return JSON.parse((await runCli(['why', id, '--json'], env)).stdout) as WhyAnswer;
}

const waits: Record<string, Scenario<ClusterWorld>> = {
  'no node: the words of the scheduler; without a kubeconfig, that the pod was not read': async (
    world,
  ) => {
    const run = await world.start('nowhere', {
      pod: { spec: { nodeSelector: { 'holdfast.test/nobody': 'has' } } },
    });
    const id = run.handle.workflowId;
    let answer: WhyAnswer | undefined;
    await until(
      'the scheduler to give up',
      async () =>
        (answer = await why(world, id, world.kubeconfig)).causes[0]?.cause === 'unschedulable',
      () => JSON.stringify(answer),
    );
    expect(answer?.causes).toEqual([
      {
        cause: 'unschedulable',
        text: expect.stringContaining('nodes are available'),
        since: expect.stringMatching(/^20/),
      },
    ]);
    expect(await why(world, id, '/nowhere/kubeconfig')).toMatchObject({
      causes: [{ cause: 'pod_start' }],
      missing: [expect.stringContaining('/nowhere/kubeconfig')],
    });
    await run.handle.signal('cancel', 'enough');
    expect(await run.ends()).toMatchObject({ outcome: 'aborted' });
  },
};

await describeWithLab('why a pod waits', { temporal: true, nodes: 'kwok' }, (lab) => {
  together(async () => await ClusterWorld.open(lab), waits);
});
