import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Compute } from '../../activities/ports/compute.ts';
import type { Registration } from '../../activities/ports/ciServer.ts';
import { recordWatch, type RecordedWatch } from './recordedWatch.ts';
import { untilSeen } from './until.ts';
import type { PodRequest, PodView, RunnerIdentity } from '../../core/domain/pod.ts';

/**
 * What the contract needs of an implementation in addition to the port: actions of a kubelet or a
 * runner.
 */
export interface ComputeContractHarness {
  readonly compute: Compute;
  /** Another instance over the same state, as another worker process has. */
  readonly second: Compute;
  newIdentity(): RunnerIdentity;
  /**
   * Returns a pod whose runner runs until {@link end}. It ends soon after SIGTERM, or only by
   * {@link finishTermination} if it lingers.
   */
  request(identity: RunnerIdentity, options?: { lingers?: boolean }): PodRequest;
  /** Resolves when the runner has started. Starts it if there is no node. */
  makeRunning(pod: PodView): Promise<void>;
  /** Ends the runner process with this exit code. */
  end(pod: PodView, exitCode: number): Promise<void>;
  /** Removes the pod by force, without a grace period. */
  vanish(pod: PodView): Promise<void>;
  /** Lets a pod that got its SIGTERM end. */
  finishTermination(pod: PodView): Promise<void>;
  /** Ends and removes everything. */
  close(): Promise<void>;
}

/** The behavior that workflows rely on, in every compute. */
export function describeComputeContract(
  name: string,
  start: () => Promise<ComputeContractHarness>,
): void {
  describe(`${name}: compute contract`, () => {
    let harness: ComputeContractHarness;
    let watches: RecordedWatch[];

    beforeEach(async () => {
      harness = await start();
      watches = [];
    });

    afterEach(async () => {
      for (const watch of watches) await watch.stop();
      await harness.close();
    });

    const secret = `secret-${randomUUID()}`;
    const registration = (): Registration => ({
      runnerName: 'runner-1',
      runnerId: '7',
      env: { ACTIONS_RUNNER_INPUT_JITCONFIG: secret },
    });

    async function create(
      identity = harness.newIdentity(),
      compute = harness.compute,
      options?: { lingers?: boolean },
    ): Promise<PodView> {
      const stored = await compute.storeRegistrationSecret(identity, registration());
      return compute.createPod(harness.request(identity, options), stored);
    }

    async function createRunning(options?: { lingers?: boolean }): Promise<PodView> {
      const pod = await create(harness.newIdentity(), harness.compute, options);
      await harness.makeRunning(pod);
      return pod;
    }

    async function watch(compute: Compute): Promise<RecordedWatch> {
      const recorded = await recordWatch(compute);
      watches.push(recorded);
      return recorded;
    }

    const observe = (pod: PodView, compute = harness.compute): Promise<PodView | undefined> =>
      compute.getPod({ ...pod });
    const waitForDeletion = (pod: PodView): Promise<unknown> =>
      untilSeen(
        `${pod.name} is gone`,
        () => observe(pod),
        (view) => view === undefined,
      );

    test('has one location, which is the same for every worker over the same state', async () => {
      const place = await harness.compute.location();
      expect(await harness.second.location()).toEqual(place);
      expect(place).toMatchObject({
        compute: harness.compute.kind,
        cluster: expect.stringMatching(/./),
        installation: expect.stringMatching(/./),
      });
    });

    describe('creation', () => {
      test('creates a pod with the deterministic name and the requested fields', async () => {
        const identity = harness.newIdentity();
        const pod = await create(identity);
        expect(pod).toMatchObject({
          name: harness.compute.podName(identity),
          workflowId: identity.workflowId,
          ended: false,
          deleted: false,
          terminating: false,
        });
        expect(pod.uid).not.toBe('');
        expect(Math.abs(Date.parse(pod.createdAt) - Date.now())).toBeLessThan(60_000);
      });

      test('twice for one identity returns the same pod, also from another worker', async () => {
        const identity = harness.newIdentity();
        const first = await create(identity);
        expect((await create(identity)).uid).toBe(first.uid);
        expect((await create(identity, harness.second)).uid).toBe(first.uid);
      });

      test('at the same time in two workers creates one pod', async () => {
        const identity = harness.newIdentity();
        const stored = await harness.compute.storeRegistrationSecret(identity, registration());
        const request = harness.request(identity);
        const pods = await Promise.all(
          [harness.compute, harness.second, harness.compute, harness.second].map((compute) =>
            compute.createPod(request, stored),
          ),
        );
        expect(new Set(pods.map((pod) => pod.uid)).size).toBe(1);
        expect(
          (await harness.compute.list()).filter((pod) => pod.name === pods[0]!.name),
        ).toHaveLength(1);
      });

      test('of another attempt of the same workflow creates another pod', async () => {
        const identity = harness.newIdentity();
        const [first, next] = [
          await create(identity),
          await create({ ...identity, attempt: identity.attempt + 1 }),
        ];
        expect(next.name).not.toBe(first.name);
        expect((await harness.second.list()).map((pod) => pod.uid)).toEqual(
          expect.arrayContaining([first.uid, next.uid]),
        );
      });
    });

    describe('registration', () => {
      test('is absent at first, is stored once, and is read by another worker', async () => {
        const identity = harness.newIdentity();
        expect(await harness.compute.readRegistrationSecret(identity)).toBeUndefined();
        expect(await harness.compute.storeRegistrationSecret(identity, registration())).toEqual(
          registration(),
        );
        const late = { runnerName: 'late', env: { ACTIONS_RUNNER_INPUT_JITCONFIG: 'late' } };
        expect(await harness.second.storeRegistrationSecret(identity, late)).toEqual(
          registration(),
        );
        expect(await harness.second.readRegistrationSecret(identity)).toEqual(registration());
      });

      test('stored by two workers at the same time: both get the stored one', async () => {
        const identity = harness.newIdentity();
        const stored = await Promise.all(
          [harness.compute, harness.second].map((compute, i) =>
            compute.storeRegistrationSecret(identity, {
              ...registration(),
              runnerName: `runner-${i}`,
            }),
          ),
        );
        expect(stored[0]).toEqual(stored[1]);
        expect(await harness.compute.readRegistrationSecret(identity)).toEqual(stored[0]);
      });

      test('is deleted, and deleting an absent one succeeds', async () => {
        const identity = harness.newIdentity();
        await harness.compute.storeRegistrationSecret(identity, registration());
        await harness.second.deleteRegistrationSecret(identity);
        expect(await harness.compute.readRegistrationSecret(identity)).toBeUndefined();
        await harness.compute.deleteRegistrationSecret(identity);
      });

      test('is never part of the view of the pod', async () => {
        const watched = await watch(harness.second);
        const pod = await createRunning();
        await watched.until(
          'started',
          (event) => event.pod.uid === pod.uid && event.pod.startedAt !== undefined,
        );
        expect(
          JSON.stringify([pod, await observe(pod), await harness.compute.list(), watched.events]),
        ).not.toContain(secret);
      });
    });

    describe('observation', () => {
      test('of a pod that does not exist, or has another uid: absent', async () => {
        const identity = harness.newIdentity();
        expect(
          await harness.compute.getPod({ name: harness.compute.podName(identity) }),
        ).toBeUndefined();
        const pod = await create(identity);
        expect(await harness.compute.getPod({ name: pod.name, uid: randomUUID() })).toBeUndefined();
        expect((await harness.compute.getPod({ name: pod.name }))?.uid).toBe(pod.uid);
      });

      test('of a running pod: node and start, no end', async () => {
        const pod = await createRunning();
        const view = await observe(pod, harness.second);
        expect(view).toMatchObject({
          uid: pod.uid,
          scheduled: true,
          node: expect.any(String),
          startedAt: expect.any(String),
          ended: false,
          terminating: false,
        });
        expect(view).not.toHaveProperty('exit');
      });

      test.each([0, 1, 7])('of a pod whose runner exited with %i', async (code) => {
        const pod = await createRunning();
        await harness.end(pod, code);
        const view = await untilSeen(
          'the pod has ended',
          () => observe(pod),
          (seen) => seen?.ended === true,
        );
        expect(view).toMatchObject({
          uid: pod.uid,
          deleted: false,
          terminating: false,
          exit: { code, oomKilled: false, finishedAt: expect.any(String) },
        });
        // The pod remains until it is deleted.
        expect(await observe(pod, harness.second)).toEqual(view);
      });
    });

    /**
     * Checks the grace period, which starts with the request for the end. Times may have whole
     * seconds only.
     */
    function expectGrace(
      { terminationDeadline = '' }: PodView,
      graceMs: number,
      from: number,
      to: number,
    ): void {
      expect(Date.parse(terminationDeadline)).toBeGreaterThan(from + graceMs - 2_000);
      expect(Date.parse(terminationDeadline)).toBeLessThan(to + graceMs + 2_000);
    }

    describe('deletion', () => {
      test('with another uid, or with unlessStarted, changes nothing', async () => {
        const pod = await createRunning();
        expect(
          await harness.compute.deletePod({ ...pod, uid: randomUUID() }, { gracePeriodSeconds: 0 }),
        ).toBe('deleted');
        expect(await harness.compute.deletePod(pod, { unlessStarted: true })).toMatchObject({
          uid: pod.uid,
          startedAt: expect.any(String),
          ended: false,
        });
        expect(await harness.compute.getPod({ ...pod, live: true })).toMatchObject({
          uid: pod.uid,
        });
        expect(await observe(pod)).toMatchObject({
          uid: pod.uid,
          ended: false,
          terminating: false,
        });
      });

      test('of a running pod: terminating until the end of its grace period, then gone', async () => {
        const pod = await createRunning({ lingers: true });
        const watched = await watch(harness.compute);
        const from = Date.now();
        expect(
          await harness.compute.deletePod(pod, { gracePeriodSeconds: 30, reason: 'drained' }),
        ).toBe('terminating');
        const to = Date.now();
        const { pod: seen } = await watched.until(
          'terminating',
          (event) => event.pod.uid === pod.uid && event.pod.terminating,
        );
        expectGrace(seen, 30_000, from, to);
        await harness.finishTermination(pod);
        await watched.until('gone', (event) => event.pod.uid === pod.uid && event.pod.deleted);
        await waitForDeletion(pod);
        expect(await harness.compute.deletePod(pod)).toBe('deleted');
      });

      test("without a grace period: the pod's own", async () => {
        const pod = await createRunning({ lingers: true });
        const watched = await watch(harness.compute);
        const from = Date.now();
        await harness.compute.deletePod(pod);
        const to = Date.now();
        const { pod: seen } = await watched.until(
          'terminating',
          (event) => event.pod.uid === pod.uid && event.pod.terminating,
        );
        expectGrace(
          seen,
          harness.request(harness.newIdentity()).terminationGracePeriodSeconds * 1_000,
          from,
          to,
        );
        await harness.finishTermination(pod);
        await waitForDeletion(pod);
      });

      test('twice, from two workers, is the same deletion, also with unlessStarted', async () => {
        const pod = await createRunning({ lingers: true });
        await Promise.all([harness.compute.deletePod(pod), harness.second.deletePod(pod)]);
        expect(await harness.compute.deletePod(pod, { unlessStarted: true })).toBe('terminating');
        await harness.finishTermination(pod);
        await waitForDeletion(pod);
      });

      test('of a running pod without grace period: gone at once', async () => {
        const pod = await createRunning();
        await harness.compute.deletePod(pod, { gracePeriodSeconds: 0 });
        await waitForDeletion(pod);
      });

      test('of an ended pod: gone', async () => {
        const pod = await createRunning();
        await harness.end(pod, 0);
        await untilSeen(
          'the pod has ended',
          () => observe(pod),
          (view) => view?.ended === true,
        );
        await harness.compute.deletePod(pod);
        await harness.finishTermination(pod);
        await waitForDeletion(pod);
        expect((await harness.compute.list()).map((view) => view.uid)).not.toContain(pod.uid);
      });

      test('of a newly created pod: gone', async () => {
        const pod = await create();
        await harness.compute.deletePod(pod, { gracePeriodSeconds: 0 });
        await waitForDeletion(pod);
      });
    });

    describe('watch', () => {
      test('reports existing pods at its start, then that the list is complete', async () => {
        const pod = await createRunning();
        const watched = await watch(harness.second);
        await untilSeen('the watch is synced', async () => watched.synced(), Boolean);
        const relisted = await untilSeen(
          'relisted',
          async () => watched.relists[0],
          (list) => list !== undefined,
        );
        expect([...relisted!.values()].filter((view) => view.uid === pod.uid)).toHaveLength(1);
        expect(watched.of(pod)[0]).toMatchObject({
          pod: { uid: pod.uid, deleted: false },
          previous: undefined,
        });
      });

      test('reports each change of a pod of another worker, with the previous view', async () => {
        const watched = await watch(harness.second);
        const pod = await createRunning();
        await watched.until(
          'started',
          (event) => event.pod.uid === pod.uid && event.pod.startedAt !== undefined,
        );
        await harness.end(pod, 3);
        const { pod: ended } = await watched.until(
          'ended',
          (event) => event.pod.uid === pod.uid && event.pod.ended,
        );
        expect(ended).toMatchObject({ deleted: false, exit: { code: 3 } });
        const events = watched.of(pod);
        expect(events[0]!.previous).toBeUndefined();
        for (let i = 1; i < events.length; i++)
          expect(events[i]!.previous).toEqual(events[i - 1]!.pod);
      });

      test('reports the end of a pod exactly once to each watcher, with its exit', async () => {
        const watched = [await watch(harness.compute), await watch(harness.second)];
        const pod = await createRunning();
        await harness.end(pod, 0);
        for (const each of watched)
          await each.until('ended', (event) => event.pod.uid === pod.uid && event.pod.ended);
        await harness.compute.deletePod(pod);
        await harness.finishTermination(pod);
        for (const each of watched) {
          const { pod: gone } = await each.until(
            'gone',
            (event) => event.pod.uid === pod.uid && event.pod.deleted,
          );
          expect(gone).toMatchObject({
            uid: pod.uid,
            deleted: true,
            ended: true,
            exit: { code: 0 },
          });
        }
        // Later pods are created and deleted. If the end of the first had been reported again, it
        // would have been by then.
        const later = await createRunning();
        await harness.vanish(later);
        for (const each of watched) {
          await each.until(
            'the later pod gone',
            (event) => event.pod.uid === later.uid && event.pod.deleted,
          );
          expect(each.of(pod).filter((event) => event.pod.deleted)).toHaveLength(1);
        }
      });

      test('reports a pod that vanishes without a final status', async () => {
        const watched = await watch(harness.compute);
        const pod = await createRunning();
        await watched.until(
          'started',
          (event) => event.pod.uid === pod.uid && event.pod.startedAt !== undefined,
        );
        await harness.vanish(pod);
        const { pod: gone, previous } = await watched.until(
          'gone',
          (event) => event.pod.uid === pod.uid && event.pod.deleted,
        );
        expect(gone).toMatchObject({ uid: pod.uid, deleted: true, ended: true });
        expect(previous).toMatchObject({ uid: pod.uid, deleted: false });
        expect(await observe(pod)).toBeUndefined();
      });

      test('reports nothing after it was stopped', async () => {
        const [stopped, running] = [await watch(harness.compute), await watch(harness.second)];
        await stopped.stop();
        const pod = await createRunning();
        await running.until(
          'started',
          (event) => event.pod.uid === pod.uid && event.pod.startedAt !== undefined,
        );
        expect(stopped.of(pod)).toEqual([]);
      });
    });
  });
}
