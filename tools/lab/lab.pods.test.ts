import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { Log, type V1ContainerStateTerminated, type V1Pod } from '@kubernetes/client-node';
import { describeWithLab } from '../../test/support/lab.ts';
import { createTestNamespace, type TestNamespace } from '../../test/support/pods.ts';
import { untilSeen } from '../../test/support/until.ts';

const isRunning = (pod: V1Pod): boolean => pod.status?.phase === 'Running';
const terminated = (pod: V1Pod): V1ContainerStateTerminated | undefined =>
  pod.status?.containerStatuses?.[0]?.state?.terminated;
const hasEnded = (pod: V1Pod): boolean => terminated(pod) !== undefined;

/** Waits for SIGTERM and says so. */
const TRAP = [
  'sh',
  '-c',
  "trap 'echo cleaned up; exit 3' TERM; echo ready; while :; do sleep 0.1; done",
];

await describeWithLab('lab with a real kubelet', { nodes: 'kubelet' }, (lab) => {
  let namespace: TestNamespace;
  beforeAll(async () => {
    namespace = await createTestNamespace(lab.kubernetes?.kubeconfig ?? '', 'lab-kubelet');
  });
  afterAll(async () => {
    await namespace.remove();
  });

  test('a deleted pod gets SIGTERM, and the output of its trap is in its log', async () => {
    await namespace.createPod('trap', { command: TRAP });
    await namespace.waitForPod('trap', isRunning);
    const output = new PassThrough();
    let text = '';
    output.on('data', (chunk: Buffer) => (text += chunk.toString('utf8')));
    await new Log(namespace.kubeConfig).log(namespace.name, 'trap', 'runner', output, {
      follow: true,
    });
    const ended = once(output, 'end');
    const uid =
      (await namespace.core.readNamespacedPod({ namespace: namespace.name, name: 'trap' })).metadata
        ?.uid ?? '';
    await namespace.core.deleteNamespacedPod({
      namespace: namespace.name,
      name: 'trap',
      gracePeriodSeconds: 600,
      body: { preconditions: { uid } },
    });
    await namespace.waitUntilGone('trap'); // by itself, not by the grace's end
    await ended;
    expect(text).toBe('ready\ncleaned up\n');
  });

  test('the Eviction API sets DisruptionTarget, and the container ends by its own trap', async () => {
    await namespace.createPod('evicted', { command: TRAP }, { terminationGracePeriodSeconds: 20 });
    // A finalizer keeps the object, so that its last status can be read.
    await namespace.core.patchNamespacedPod({
      namespace: namespace.name,
      name: 'evicted',
      body: [{ op: 'add', path: '/metadata/finalizers', value: ['holdfast.test/keep'] }],
    });
    await namespace.waitForPod('evicted', isRunning);
    await namespace.core.createNamespacedPodEviction({
      namespace: namespace.name,
      name: 'evicted',
      body: { metadata: { name: 'evicted', namespace: namespace.name } },
    });
    const pod = await namespace.waitForPod('evicted', hasEnded);
    expect(pod.status?.conditions).toContainEqual(
      expect.objectContaining({
        type: 'DisruptionTarget',
        status: 'True',
        reason: 'EvictionByEvictionAPI',
      }),
    );
    expect(terminated(pod)).toMatchObject({ exitCode: 3 });
    await namespace.core.patchNamespacedPod({
      namespace: namespace.name,
      name: 'evicted',
      body: [{ op: 'remove', path: '/metadata/finalizers' }],
    });
    await namespace.waitUntilGone('evicted');
  });

  test('an exit code of 7 is seen', async () => {
    await namespace.createPod('seven', { command: ['sh', '-c', 'echo bye; exit 7'] });
    expect(terminated(await namespace.waitForPod('seven', hasEnded))).toMatchObject({
      exitCode: 7,
      reason: 'Error',
    });
    await untilSeen(
      'its log',
      async () => await namespace.log('seven'),
      (text) => text === 'bye\n',
    );
  });

  test('a container that takes too much memory is OOMKilled', async () => {
    await namespace.createPod('greedy', {
      command: ['tail', '/dev/zero'],
      resources: { limits: { memory: '32Mi' } },
    });
    expect(terminated(await namespace.waitForPod('greedy', hasEnded))).toMatchObject({
      exitCode: 137,
      reason: 'OOMKilled',
    });
  });

  test('an image that cannot be pulled is seen as such', async () => {
    await namespace.createPod('missing', { image: 'holdfast.test/does-not-exist:1' });
    const pod = await namespace.waitForPod('missing', (each) =>
      /ErrImagePull|ImagePullBackOff/.test(
        each.status?.containerStatuses?.[0]?.state?.waiting?.reason ?? '',
      ),
    );
    expect(pod.status?.phase).toBe('Pending');
  });

  test('a pod reaches a server on this machine', async () => {
    const seen: (string | undefined)[] = [];
    const server: Server = createServer((request, response) => {
      seen.push(request.url);
      response.end('hello pod');
    });
    await once(server.listen(0, lab.hostAddress), 'listening');
    const { port } = server.address() as AddressInfo;
    await namespace.createPod('caller', {
      command: ['wget', '-qO-', `http://${lab.hostAddress}:${port}/from-a-pod`],
    });
    expect(terminated(await namespace.waitForPod('caller', hasEnded))).toMatchObject({
      exitCode: 0,
    });
    await untilSeen(
      'its log',
      async () => await namespace.log('caller'),
      (text) => text === 'hello pod',
    );
    expect(seen).toEqual(['/from-a-pod']);
    await new Promise((resolve) => server.close(resolve));
  });

  test('the runner image has the pinned Node, tini as PID 1 and the simulator', async () => {
    const script =
      "console.log(process.version, require('fs').readFileSync('/proc/1/comm', 'utf8').trim(), require('fs').existsSync('/opt/holdfast/simulator/runner.ts'))";
    await namespace.createPod('node', {
      image: 'holdfast.test/runner:1',
      command: ['/sbin/tini', '--', 'node', '-e', script],
    });
    expect(terminated(await namespace.waitForPod('node', hasEnded))).toMatchObject({ exitCode: 0 });
    await untilSeen(
      'its log',
      async () => await namespace.log('node'),
      (text) => text === `${process.version} tini true\n`,
    );
  });
});
