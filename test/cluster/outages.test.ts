import { afterAll, afterEach, beforeEach, expect, test } from '@jest/globals';
import { down, kill, start, up } from '../../tools/lab/lab.ts';
import { WORKFLOW_ID_ANNOTATION } from '../../activities/compute/kubernetes/metadata.ts';
import type { ClusterRun } from '../support/clusterRun.ts';
import { ClusterWorld } from '../support/clusterWorld.ts';
import { describeIf } from '../support/lab.ts';
import { outagesLabFolder } from '../support/labFolder.ts';
import { isOverloaded } from '../support/machineLoad.ts';
import { until } from '../support/until.ts';

/** By then every call that is tried at a pace of its own waits out a delay of half a minute or more. */
const OUTAGE_MS = 35_000;
const MANY = 50;
/**
 * Time in which all that waited for a server has to be done, in addition to what the same takes this
 * machine without an outage (ms). An overloaded machine has longer than one delay between two tries.
 */
const soonMs = (): number => (isOverloaded() ? 60_000 : 10_000);
/** Time after which it counts as never done (ms). */
const NEVER_MS = 180_000;

/** Nothing runs in the pods: what is looked at is how they come and go. */
await describeIf(
  'an outage',
  async () => await up({ stateDir: outagesLabFolder(), temporal: true, kubernetes: true }),
  { temporal: true, kubernetes: true },
  (lab) => {
    let world: ClusterWorld;
    beforeEach(async () => {
      world = await ClusterWorld.open(lab, { supervisor: false, webhook: false });
    }, 60_000);
    afterEach(async () => await world.close(), 60_000);
    afterAll(async () => await down({ stateDir: lab.stateDir, purge: true }), 60_000);

    const startMany = async (name: string, count: number): Promise<ClusterRun[]> =>
      await Promise.all(
        Array.from({ length: count }, async (_, index) => await world.start(`${name}-${index}`)),
      );

    const pods = async (): Promise<string[]> =>
      (await world.namespace.core.listNamespacedPod({ namespace: world.namespace.name })).items.map(
        ({ metadata }) => metadata?.annotations?.[WORKFLOW_ID_ANNOTATION] ?? '',
      );

    async function allProvisioned(runs: readonly ClusterRun[]): Promise<boolean> {
      const have = new Set(await pods());
      return runs.every(({ handle }) => have.has(handle.workflowId));
    }

    /** What each of them has cost so far: tries of what it waits for, events of its history. */
    async function costs(
      runs: readonly ClusterRun[],
    ): Promise<{ attempts: number; events: number }[]> {
      return await Promise.all(
        runs.map(async ({ handle }) => {
          const { raw, historyLength } = await handle.describe();
          return {
            attempts: Math.max(
              0,
              ...(raw.pendingActivities ?? []).map(({ attempt }) => attempt ?? 0),
            ),
            events: historyLength,
          };
        }),
      );
    }

    /** Awaits the end of what must be over soon. @returns after how many ms it was */
    async function soon(
      what: string,
      holds: () => Promise<boolean>,
      explain: () => string = () => '',
    ): Promise<number> {
      const startedAt = Date.now();
      await until(what, holds, () => `after ${Date.now() - startedAt} ms ${explain()}`, NEVER_MS);
      return Date.now() - startedAt;
    }

    const lasts = async (): Promise<void> => {
      const endsAt = Date.now() + OUTAGE_MS;
      await until('the outage to be old', () => Date.now() >= endsAt, undefined, 2 * OUTAGE_MS);
    };

    test('of the CI server: each worker sends a request every few seconds, and fifty waiting runners are provisioned soon after its return', async () => {
      await world.startWorker();
      const usual = await startMany('usual', MANY);
      const usualMs = await soon('the usual', async () => await allProvisioned(usual));
      const since = Date.now();
      world.simulator.addFault({ kind: 'status', status: 502 });
      const runs = await startMany('waiting', MANY);
      await until(
        'all to wait',
        async () => (await costs(runs)).every(({ attempts }) => attempts > 0),
        undefined,
        NEVER_MS,
      );
      const events = (await costs(runs)).map((each) => each.events);
      await lasts();
      const sent = world.simulator.requests().filter(({ status }) => status === 502).length;
      const cost = await costs(runs);
      const lastedMs = Date.now() - since;
      world.simulator.clearFaults();
      const ms = await soon('all to be provisioned', async () => await allProvisioned(runs));
      process.stderr.write(
        `CI server: ${sent} requests, ${sum(cost)} tries, all back after ${ms} ms, usually ${usualMs} ms\n`,
      );
      expect(ms).toBeLessThanOrEqual(soonMs() + usualMs);
      // Of each worker: what was under way when it began, and a probe every 2 s.
      expect(sent).toBeLessThanOrEqual(4 * (20 + lastedMs / 2_000));
      expect(sum(cost)).toBeLessThanOrEqual(mostTries(lastedMs));
      // Tries of an activity add no events. A workflow task that was too slow is repeated and does.
      const added = cost.map((each, index) => each.events - (events[index] ?? 0));
      expect(Math.max(...added)).toBeLessThanOrEqual(6);
    }, 600_000);

    test('of the API server: waiting runners are provisioned or torn down soon after its return', async () => {
      const leaving = await startMany('leaving', MANY / 2);
      const usualMs = await soon('their pods', async () => await allProvisioned(leaving));
      const since = Date.now();
      await kill(lab.stateDir, 'kube-apiserver');
      const coming = await startMany('coming', MANY / 2);
      await Promise.all(
        leaving.map(
          async ({ handle }) => await handle.signal('cancel', { reason: 'enough', mode: 'force' }),
        ),
      );
      await lasts();
      const cost = await costs([...leaving, ...coming]);
      const lastedMs = Date.now() - since;
      const started = start(lab.stateDir, 'kube-apiserver');
      await until('it to answer', async () => (await pods()).length > 0);
      let missing: string[] = [];
      let left: string[] = [];
      const ms = await soon(
        'all to be done',
        async () => {
          const have = new Set(await pods());
          missing = coming.map(({ handle }) => handle.workflowId).filter((id) => !have.has(id));
          left = leaving.map(({ handle }) => handle.workflowId).filter((id) => have.has(id));
          return missing.length === 0 && left.length === 0;
        },
        () => `without a pod: ${missing.join(', ')}; not torn down: ${left.join(', ')}`,
      );
      process.stderr.write(
        `API server: ${sum(cost)} tries, all done after ${ms} ms, usually ${usualMs} ms\n`,
      );
      expect(ms).toBeLessThanOrEqual(soonMs() + usualMs);
      expect(sum(cost)).toBeLessThanOrEqual(mostTries(lastedMs));
      await Promise.all([started, ...leaving.map(async ({ handle }) => await handle.result())]);
    }, 600_000);
  },
);

/** However many wait, a worker takes up five a second. */
const mostTries = (lastedMs: number): number => 4 * (MANY + (5 * lastedMs) / 1_000);

function sum(cost: readonly { readonly attempts: number }[]): number {
  return cost.reduce((total, { attempts }) => total + attempts, 0);
}
