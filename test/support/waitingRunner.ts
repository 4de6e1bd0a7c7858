/**
 * A workflow of the runner's type that only waits for its pod, as runners do. The test is about
 * what ends the wait.
 */
import { defineSignal, proxyActivities, setHandler } from '@temporalio/workflow';
import type { PodView } from '../../core/domain/pod.ts';

const { wait } = proxyActivities<{ wait(): Promise<PodView> }>({
  startToCloseTimeout: '10m',
  activityId: 'ended/pod-1',
});

export async function runner(): Promise<{ pod: PodView; states: unknown[] }> {
  const states: unknown[] = [];
  setHandler(defineSignal<[unknown]>('podState'), (state) => void states.push(state));
  return { pod: await wait(), states };
}
