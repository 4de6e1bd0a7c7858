/** The controller of RunnerSet resources, with an API server and sets that the test controls. */
import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Client } from '@temporalio/client';
import { once } from 'node:events';
import {
  SET_RESOURCE_MEMO,
  type RunnerSetInput,
  type RunnerSetRef,
} from '../../../core/contract/index.ts';
import { parseRunnerSetInput } from '../../../core/input/runnerSet.ts';
import type { ResourceApi } from '../../../worker/controller/resourceApi.ts';
import { RunnerSetController } from '../../../worker/controller/runnerSetController.ts';
import type { RunnerSetResource } from '../../../worker/controller/runnerSetResource.ts';
import { SetWorkflows, type FoundSet } from '../../../worker/controller/setWorkflows.ts';
import { until } from '../../support/until.ts';

const SPEC = { replicas: 1, template: { organization: 'acme' } };
const RESOURCE: RunnerSetResource = {
  metadata: { name: 'linux', uid: 'u-1', generation: 1 },
  spec: SPEC,
};
const REF: RunnerSetRef = { namespace: 'ci', name: 'linux', uid: 'u-0' };

let ended: string[];
let started: RunnerSetRef[];
let reasons: (string | undefined)[];
beforeEach(() => {
  ended = [];
  started = [];
  reasons = [];
});

/** Reconciles once, with the resource and the set. */
async function reconcile(resource: RunnerSetResource | undefined, found: FoundSet): Promise<void> {
  let finds = 0;
  const sets = {
    namesOf: async () => ['linux'],
    find: async () => {
      finds++;
      return found;
    },
    end: async (name: string) => void ended.push(name),
    start: async (_input: object, _spec: object, ref: RunnerSetRef) => void started.push(ref),
  } as unknown as SetWorkflows;
  const api = {
    list: async () => ({
      resources: resource === undefined ? [] : [resource],
      resourceVersion: '1',
    }),
    // eslint-disable-next-line require-yield
    async *watch(_version: string, _ms: number, signal: AbortSignal) {
      await once(signal, 'abort');
    },
    get: async () => resource,
    patchStatus: async (_name: string, { conditions }: RunnerSetResource['status'] & object) =>
      void reasons.push(conditions?.[0]?.reason),
  } as unknown as ResourceApi;
  const controller = new RunnerSetController({
    api,
    sets,
    namespace: 'ci',
    cluster: async () => 'here',
    taskQueue: 'holdfast',
    logger: { info: () => undefined, warn: () => undefined } as never,
  });
  await until('the set to be looked up', async () => finds > 0);
  await controller.stop();
}

const running = (resource: RunnerSetRef | undefined, taskQueue = 'holdfast'): FoundSet => ({
  state: 'running',
  resource,
  chain: 'r-1',
  taskQueue,
  declaration: undefined,
});

describe('a set without its resource', () => {
  test.each<[string, FoundSet, string[]]>([
    ['of this cluster is ended', running({ ...REF, cluster: 'here' }), ['linux']],
    ['of an unknown cluster is ended', running(REF), ['linux']],
    ['of another cluster stays', running({ ...REF, cluster: 'there' }), []],
    ['of another namespace stays', running({ ...REF, namespace: 'x', cluster: 'here' }), []],
    ['of another task queue stays', running({ ...REF, cluster: 'here' }, 'other'), []],
    ['that no resource created stays', running(undefined), []],
  ])('%s', async (_what, found, expected) => {
    await reconcile(undefined, found);
    expect(ended).toEqual(expected);
  });
});

test.each([
  ['of another cluster', 'there', 'NameTaken', []],
  ['of an earlier resource of this cluster', 'here', 'PreviousSetDraining', ['linux']],
])('a resource with the name of a set %s', async (_what, cluster, reason, expected) => {
  await reconcile(RESOURCE, running({ ...REF, cluster }));
  expect({ ended, started, reasons }).toEqual({
    ended: expected,
    started: [],
    reasons: [reason],
  });
});

test('a started set has the cluster of its resource', async () => {
  await reconcile(RESOURCE, { state: 'absent' });
  expect(started).toEqual([{ namespace: 'ci', name: 'linux', uid: 'u-1', cluster: 'here' }]);
});

test('the memo of a set has the cluster, by which the sets of other clusters are left out', async () => {
  const memos: object[] = [];
  const workflow = {
    start: async (_type: string, { memo }: { memo: object }) => void memos.push(memo),
    list: () => memos.map((memo) => ({ memo })),
  };
  const client = { workflow } as unknown as Client;
  const sets = new SetWorkflows({ client: () => client, taskQueue: 'holdfast' });
  const input: RunnerSetInput = { ...SPEC, name: 'linux' };
  const options = { hash: () => '', checkSchedule: () => undefined, policy: 'elsewhere' } as const;
  const parsed = parseRunnerSetInput(input, options);
  if (!parsed.ok) throw new Error('the input is invalid');
  for (const cluster of ['here', 'there'])
    await sets.start({ ...input, name: cluster }, parsed.spec, { ...REF, name: cluster, cluster });
  expect(memos).toMatchObject([
    { [SET_RESOURCE_MEMO]: { cluster: 'here' } },
    { [SET_RESOURCE_MEMO]: { cluster: 'there' } },
  ]);
  memos.push({ [SET_RESOURCE_MEMO]: { ...REF, name: 'unknown' } });
  expect(await sets.namesOf({ cluster: 'here', namespace: 'ci' })).toEqual(['here', 'unknown']);
});
