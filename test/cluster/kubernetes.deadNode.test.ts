import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { PatchStrategy, setHeaderOptions } from '@kubernetes/client-node';
import { startKubernetesHarness, type KubernetesHarness } from '../support/kubernetesHarness.ts';
import { describeWithLab } from '../support/lab.ts';
import { recordWatch } from '../support/recordedWatch.ts';

await describeWithLab('an unreachable node', { kubernetes: true }, (lab) => {
  let harness: KubernetesHarness;
  beforeEach(async () => {
    harness = await startKubernetesHarness(lab.kubernetes!.kubeconfig);
  });
  afterEach(async () => await harness.close());

  test('logs of its pods cannot be read, which does not mean that the API server is unreachable', async () => {
    const { compute, core, namespace } = harness;
    // Nothing listens there.
    const status = {
      addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
      daemonEndpoints: { kubeletEndpoint: { Port: 1 } },
    };
    await core.patchNodeStatus(
      { name: namespace, body: { status } },
      setHeaderOptions('Content-Type', PatchStrategy.StrategicMergePatch),
    );
    const pod = await compute.createPod(harness.request(harness.newIdentity()), undefined);
    await harness.makeRunning(pod);
    for (let time = 0; time < 4; time += 1)
      await expect(compute.tailLog(pod, 1_000)).rejects.toMatchObject({
        kind: 'unavailable',
        message: expect.stringMatching(/^Cannot read the log of pod .*(refused|dial)/),
      });
    expect(compute.isReachable?.()).toBe(true);
    expect((await compute.getPod(pod))?.uid).toBe(pod.uid);
  });

  test('the last view of a pod is known even if no request succeeds', async () => {
    const { compute } = harness;
    const watch = await recordWatch(compute);
    const pod = await compute.createPod(harness.request(harness.newIdentity()), undefined);
    await watch.until('created', (event) => event.pod.uid === pod.uid);
    await harness.makeRunning(pod);
    await harness.end(pod, 0);
    await watch.until('ended', (event) => event.pod.ended);
    expect(compute.getCachedPod?.(pod)).toMatchObject({ uid: pod.uid, ended: true });
    expect(compute.getCachedPod?.({ ...pod, uid: 'another' })).toBeUndefined();
    await compute.deletePod(pod);
    await watch.until('gone', (event) => event.pod.deleted);
    expect(compute.getCachedPod?.(pod)).toBe('deleted');
    await watch.stop();
    expect(compute.getCachedPod?.(pod)).toBe('deleted');
  });
});
