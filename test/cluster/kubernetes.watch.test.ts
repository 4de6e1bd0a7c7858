import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { KubernetesCompute } from '../../activities/compute/kubernetes/kubernetesCompute.ts';
import { startApiProxy, type ApiProxy } from '../support/apiProxy.ts';
import { startKubernetesHarness, type KubernetesHarness } from '../support/kubernetesHarness.ts';
import { describeWithLab } from '../support/lab.ts';
import { recordWatch, type RecordedWatch } from '../support/recordedWatch.ts';
import { until } from '../support/until.ts';
import type { PodView } from '../../core/domain/pod.ts';

const gone410 = {
  kind: 'Status',
  apiVersion: 'v1',
  status: 'Failure',
  reason: 'Expired',
  code: 410,
  message: 'too old resource version: 1 (2)',
};

await describeWithLab('kubernetes: the shared watch', { kubernetes: true }, (lab) => {
  let harness: KubernetesHarness;
  let proxy: ApiProxy;
  let compute: KubernetesCompute;
  let watch: RecordedWatch;
  let pod: PodView;

  /** A pod that the watch has seen running; all that follows must not lose it. */
  beforeEach(async () => {
    harness = await startKubernetesHarness(lab.kubernetes!.kubeconfig);
    proxy = await startApiProxy(harness.kubeConfig);
    compute = harness.instance({ kubeConfig: proxy.kubeConfig, minBackoffMs: 20 });
    pod = await harness.compute.createPod(harness.request(harness.newIdentity()), undefined);
    await harness.makeRunning(pod);
  });

  afterEach(async () => {
    await watch.stop();
    await harness.close();
    await proxy.close();
  });

  async function startWatch(): Promise<void> {
    watch = await recordWatch(compute);
    await until('the watch is synced', () => watch.synced());
  }

  const lists = (): number => proxy.seen.filter(({ kind }) => kind === 'list').length;
  const watches = (): number => proxy.seen.filter(({ kind }) => kind === 'watch').length;
  const goneEvents = (): number => watch.of(pod).filter((event) => event.pod.deleted).length;

  /** The watch works: a change made past the proxy arrives. */
  async function expectAlive(): Promise<void> {
    await harness.end(pod, 3);
    const { pod: ended } = await watch.until(
      'the pod ended',
      (event) => event.pod.uid === pod.uid && event.pod.ended,
    );
    expect(ended).toMatchObject({ deleted: false, exit: { code: 3 } });
    await until('the watch is synced again', () => watch.synced());
    expect(goneEvents()).toBe(0);
  }

  test('after a dropped connection it resumes without a new list', async () => {
    await startWatch();
    proxy.cutAll();
    await until('a second watch', () => watches() >= 2);
    await expectAlive();
    expect(lists()).toBe(1);
  });

  test('events during an outage of the server are delivered afterwards', async () => {
    await startWatch();
    proxy.down = true;
    proxy.cutAll();
    await until('the loss was noticed', () => !watch.synced());
    await harness.end(pod, 3);
    await until('several tries', () => watches() >= 4);
    expect(watch.of(pod).some((event) => event.pod.ended)).toBe(false);
    proxy.down = false;
    await watch.until('the pod ended', (event) => event.pod.uid === pod.uid && event.pod.ended);
    expect(goneEvents()).toBe(0);
  });

  test.each([503, 429, 500, 401])(
    'HTTP %i on the watch: it backs off and resumes',
    async (status) => {
      proxy.script(
        'watch',
        ...Array.from({ length: 3 }, () => ({
          kind: 'answer' as const,
          status,
          body: '{"kind":"Status"}',
        })),
      );
      await startWatch();
      expect(watches()).toBe(4);
      await expectAlive();
      expect(lists()).toBe(1);
      expect(harness.log.filter(({ level }) => level === 'warn').length).toBeGreaterThanOrEqual(3);
    },
  );

  test('410 as response or event: a pod that vanished in the meantime is reported as deleted, with its last view', async () => {
    await startWatch();
    proxy.script(
      'watch',
      {
        kind: 'answer',
        status: 200,
        body: `${JSON.stringify({ type: 'ERROR', object: gone410 })}\n`,
      },
      { kind: 'answer', status: 410, body: JSON.stringify(gone410) },
    );
    proxy.down = true;
    proxy.cutAll();
    await until('the loss was noticed', () => !watch.synced());
    await harness.vanish(pod);
    proxy.down = false;
    const { pod: last, previous } = await watch.until(
      'gone',
      (event) => event.pod.uid === pod.uid && event.pod.deleted,
    );
    expect(last).toMatchObject({
      ended: true,
      deleted: true,
      node: harness.namespace,
      startedAt: expect.any(String),
    });
    expect(previous).toMatchObject({ deleted: false });
    await until('the watch is synced again', () => watch.synced());
    expect(lists()).toBe(3);
    expect(goneEvents()).toBe(1);
    expect(watch.relists.at(-1)!.size).toBe(0);
  });

  test('a silent watch counts as lost; the next one delivers its missed events', async () => {
    compute = harness.instance({
      kubeConfig: proxy.kubeConfig,
      watchTimeoutMs: 15_000,
      minBackoffMs: 20,
    });
    proxy.script('watch', { kind: 'silence' });
    await startWatch();
    await harness.end(pod, 3);
    expect(watches()).toBe(1);
    await watch.until('the pod ended', (event) => event.pod.uid === pod.uid && event.pod.ended);
    expect(lists()).toBe(1);
  });

  test('without events the server closes the watch regularly, and a bookmark keeps the resource version recent', async () => {
    compute = harness.instance({ kubeConfig: proxy.kubeConfig, watchTimeoutMs: 24_000 });
    await startWatch();
    const foreign = harness.instance({ installation: 'another' });
    const { name } = await foreign.createPod(harness.request(harness.newIdentity()), undefined);
    const newer = Number(
      (await harness.core.readNamespacedPod({ name, namespace: harness.namespace })).metadata!
        .resourceVersion,
    );
    await until('a second watch', () => watches() >= 2);
    const [first, second] = proxy.seen
      .filter(({ kind }) => kind === 'watch')
      .map(({ url }) => Number(url.searchParams.get('resourceVersion')));
    expect(first).toBeLessThan(newer);
    expect(second).toBeGreaterThanOrEqual(newer);
    expect(watch.synced()).toBe(true);
    expect(watch.events.some((event) => event.pod.name === name)).toBe(false);
    expect(harness.log.filter(({ level }) => level === 'warn')).toEqual([]);
    await expectAlive();
    expect(lists()).toBe(1);
  });

  test.each<[string, string]>([
    ['another kind', '{"kind":"Status","status":"Success"}'],
    ['no JSON', '<html>please log in</html>'],
    ['an empty object', '{}'],
  ])('a list that is %s never means "no pods"', async (_, body) => {
    await startWatch();
    proxy.script('watch', { kind: 'answer', status: 410, body: JSON.stringify(gone410) });
    proxy.script(
      'list',
      { kind: 'answer', status: 200, body },
      { kind: 'answer', status: 200, body },
    );
    proxy.cutAll();
    await until('the list was tried again', () => lists() >= 4);
    await until('the watch is synced again', () => watch.synced());
    expect(goneEvents()).toBe(0);
    expect(watch.relists).toHaveLength(2);
    await expectAlive();
  });

  test('a pod that is missing from a list is read by name, and counts as deleted only if it does not exist', async () => {
    await startWatch();
    const { resourceVersion } =
      (await harness.core.listNamespacedPod({ namespace: harness.namespace })).metadata ?? {};
    proxy.script('watch', { kind: 'answer', status: 410, body: JSON.stringify(gone410) });
    proxy.script('list', {
      kind: 'answer',
      status: 200,
      body: JSON.stringify({
        kind: 'PodList',
        apiVersion: 'v1',
        metadata: { resourceVersion },
        items: [],
      }),
    });
    proxy.cutAll();
    await until('a new list', () => watch.relists.length === 2 && watch.synced());
    expect({ gone: goneEvents(), listed: watch.relists.at(-1)?.size }).toEqual({
      gone: 0,
      listed: 0,
    });
    expect(await compute.getPod(pod)).toMatchObject({ uid: pod.uid, ended: false });
    await expectAlive();
  });

  test("a running pod without Holdfast's labels leaves the watch but does not count as deleted; its real end does", async () => {
    await startWatch();
    const relabel = async (op: object): Promise<unknown> =>
      await harness.core.patchNamespacedPod({
        name: pod.name,
        namespace: harness.namespace,
        body: [{ path: '/metadata/labels/holdfast.dev~1installation', ...op }],
      });
    await relabel({ op: 'remove' });
    await until('it is out of sight', () =>
      harness.log.some(({ message }) => message === 'an existing pod is missing from the watch'),
    );
    expect(goneEvents()).toBe(0);
    expect(await compute.getPod(pod)).toMatchObject({ uid: pod.uid, ended: false });
    await relabel({ op: 'add', value: 'contract' });
    await harness.vanish(pod);
    await watch.until('gone', (event) => event.pod.uid === pod.uid && event.pod.deleted);
    expect(goneEvents()).toBe(1);
  });

  test('a 410 of a proxy means a lost watch, not an expired one: no new list', async () => {
    await startWatch();
    proxy.script('watch', { kind: 'answer', status: 410, body: '<html>Gone</html>' });
    proxy.cutAll();
    await until('a third watch', () => watches() >= 3);
    await expectAlive();
    expect(lists()).toBe(1);
  });

  test('a truncated list is read again from its start', async () => {
    proxy.script(
      'list',
      { kind: 'cut', afterBytes: 400 },
      { kind: 'answer', status: 503, body: '' },
    );
    await startWatch();
    expect(lists()).toBe(3);
    expect(watch.relists).toHaveLength(1);
    await expectAlive();
  });

  test('a watch that is cut within an event loses nothing', async () => {
    proxy.script('watch', { kind: 'cut', afterBytes: 700 });
    await startWatch();
    await expectAlive();
    expect(lists()).toBe(1);
  });

  test('a server that closes each watch immediately does not cause a tight loop', async () => {
    const slow = harness.instance({ kubeConfig: proxy.kubeConfig, minBackoffMs: 400 });
    proxy.script(
      'watch',
      ...Array.from({ length: 3 }, () => ({ kind: 'answer' as const, status: 200, body: '' })),
    );
    const startedAt = performance.now();
    watch = await recordWatch(slow);
    await until('a fourth watch', () => watches() === 4);
    // 200 + 400 + 800 ms at least, with the most favourable jitter.
    expect(performance.now() - startedAt).toBeGreaterThan(1_300);
  });

  test('a listener that throws does not end the watch', async () => {
    const failing = await compute.watch({
      changed() {
        throw new Error('defect');
      },
      relisted() {
        throw new Error('defect');
      },
    });
    await until('synced', () => failing.synced());
    await failing.stop();
    expect(harness.log.filter(({ message }) => message === 'listener of pods failed')).toHaveLength(
      2,
    );
    await startWatch();
    await expectAlive();
  });

  describe('observe', () => {
    const gets = (): number =>
      proxy.seen.filter(({ kind, method }) => kind === 'other' && method === 'GET').length;

    test('returns from the synced cache without a request, also for a deleted pod', async () => {
      await startWatch();
      const own = await compute.createPod(harness.request(harness.newIdentity()), undefined);
      await watch.until('created', (event) => event.pod.uid === own.uid);
      expect(await compute.getPod(own)).toMatchObject({ uid: own.uid, deleted: false });
      await harness.vanish(own);
      await watch.until('gone', (event) => event.pod.uid === own.uid && event.pod.deleted);
      expect(await compute.getPod(own)).toBeUndefined();
      expect(gets()).toBe(0);
    });

    test('reads live while the watch is lost', async () => {
      await startWatch();
      proxy.script(
        'watch',
        ...Array.from({ length: 50 }, () => ({ kind: 'answer' as const, status: 503, body: '' })),
      );
      proxy.cutAll();
      await until('the loss was noticed', () => !watch.synced());
      await harness.end(pod, 3);
      expect(await compute.getPod(pod)).toMatchObject({ ended: true, exit: { code: 3 } });
      expect(gets()).toBe(1);
    });

    test('reads live for a pod with a name or UID that is not in the cache', async () => {
      await startWatch();
      expect(await compute.getPod({ name: 'never-was' })).toBeUndefined();
      expect(await compute.getPod({ name: pod.name, uid: 'another' })).toBeUndefined();
      expect(gets()).toBe(2);
    });
  });

  test('many calls share few connections', async () => {
    await startWatch();
    await Promise.all(Array.from({ length: 100 }, () => compute.getPod({ name: 'never-was' })));
    await Promise.all(Array.from({ length: 100 }, () => compute.getPod({ name: 'never-was' })));
    expect(proxy.connections()).toBeLessThanOrEqual(33);
  });
});
