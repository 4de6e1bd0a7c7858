import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { describeWithLab } from '../../test/support/lab.ts';
import { createTestNamespace, type TestNamespace } from '../../test/support/pods.ts';

await describeWithLab('lab with KWOK nodes', { nodes: 'kwok' }, (lab) => {
  let namespace: TestNamespace;
  beforeAll(async () => {
    namespace = await createTestNamespace(lab.kubernetes?.kubeconfig ?? '', 'lab-kwok');
  });
  afterAll(async () => {
    await namespace.remove();
  });

  test('a hundred pods run, on fake nodes', async () => {
    const names = Array.from({ length: 100 }, (_, index) => `pod-${index}`);
    await Promise.all(
      names.map((name) =>
        namespace.createPod(name, { resources: { requests: { cpu: '1', memory: '2Gi' } } }),
      ),
    );
    for (const name of names) {
      const pod = await namespace.waitForPod(name, (each) => each.status?.phase === 'Running');
      expect(pod.spec?.nodeName).toMatch(/^kwok-\d$/);
      expect(pod.status?.containerStatuses?.[0]?.state?.running?.startedAt).toBeInstanceOf(Date);
    }
  });

  test('a pod ends when its status is patched, and then stays as it is', async () => {
    await namespace.createPod('ends', {});
    const running = await namespace.waitForPod('ends', (pod) => pod.status?.phase === 'Running');
    const {
      name,
      image,
      imageID = '',
    } = running.status?.containerStatuses?.[0] ?? { name: '', image: '' };
    const container = {
      name,
      image,
      imageID,
      ready: false,
      started: false,
      restartCount: 0,
      state: { terminated: { exitCode: 0, reason: 'Completed' } },
    };
    await namespace.core.patchNamespacedPodStatus({
      namespace: namespace.name,
      name: 'ends',
      body: [
        { op: 'replace', path: '/status/phase', value: 'Succeeded' },
        { op: 'replace', path: '/status/containerStatuses', value: [container] },
      ],
    });
    const ended = await namespace.waitForPod('ends', (pod) => pod.status?.phase === 'Succeeded');
    // Pods made later run: what KWOK was to do with this one, it would have done.
    await namespace.createPod('later', {});
    await namespace.waitForPod('later', (pod) => pod.status?.phase === 'Running');
    const still = await namespace.waitForPod('ends', () => true);
    expect(still.metadata?.resourceVersion).toBe(ended.metadata?.resourceVersion);
  });

  test('a deleted pod goes', async () => {
    await namespace.createPod('goes', {}, { terminationGracePeriodSeconds: 3600 });
    await namespace.waitForPod('goes', (pod) => pod.status?.phase === 'Running');
    await namespace.core.deleteNamespacedPod({ namespace: namespace.name, name: 'goes' });
    await namespace.waitUntilGone('goes');
  });
});
