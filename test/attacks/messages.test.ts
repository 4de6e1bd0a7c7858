/**
 * Whoever may write to the Temporal namespace sends anything to anything: signals, updates and queries of every workflow type, with a body of their
 * own. A workflow that cannot read one must not stop over it, and none of them may have more done than its sender could have asked for.
 */
import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { querySetStatus } from '../../activities/runnerSet/querySetStatus.ts';
import * as contract from '../../core/contract/index.ts';
import { CiServerError } from '../../activities/ports/ciServerError.ts';
import { isObject } from '../../core/domain/isObject.ts';
import { describeWithLab } from '../support/lab.ts';
import { memoryWorld, type MemoryWorld } from '../support/memoryWorld.ts';
import { SHORT_INTERVALS } from '../support/shortIntervals.ts';
import { step } from '../support/jobRun.ts';
import { until } from '../support/until.ts';

const {
  RUNNER_WORKFLOW,
  RUNNER_SET_WORKFLOW,
  JOB_WORKFLOW,
  JOB_GROUP_WORKFLOW,
  SCALE_SET_LISTENER_WORKFLOW,
  SET_COMMAND_WORKFLOW,
} = contract;
const TEMPLATE = { organization: 'acme', intervals: SHORT_INTERVALS };

/** Bodies that are none, of whatever message. */
const GARBAGE: readonly unknown[] = [
  null,
  'x',
  5,
  [],
  {},
  { length: {} },
  { events: 5 },
  { events: [null, {}, { kind: 'ended' }] },
  { workflowId: 5, command: { command: 'drain' } },
  { outcome: 5, message: { toString: 5 }, attempt: 1e15 },
  { uid: {}, state: [] },
  { toString: 5, constructor: 5 },
];

/** Bodies of one kind of message that are well formed, and lie. */
const LIES: Readonly<Record<string, readonly unknown[]>> = {
  jobEvent: [
    { action: 'completed', jobId: '1', runnerName: 'another', runnerId: '9' },
    { action: 'in_progress', jobId: '1', repository: 'rival/web' },
    // Times that no event has.
    ...[-9e15, -1, 9e15, 1e300].map((at) => ({
      action: 'in_progress',
      jobId: '1',
      repository: 'acme/web',
      at,
    })),
  ],
  jobEvents: [
    {
      events: [
        {
          action: 'queued',
          jobId: '1',
          runAttempt: 1,
          repository: 'rival/web',
          labels: ['self-hosted'],
          at: Date.now(),
        },
      ],
    },
    ...[-9e15, -1, 9e15, 1e300].map((at) => ({
      at,
      events: [
        {
          action: 'queued',
          jobId: '1',
          runAttempt: 1,
          repository: 'acme/web',
          labels: ['self-hosted'],
          at,
        },
      ],
    })),
  ],
  queueChecked: [
    ...[-9e15, -1, 9e15, 1e300].map((checkedAt) => ({ checkedAt, jobs: [] })),
    // A complete check that names only jobs and sets that the set does not know.
    {
      checkedAt: Date.now(),
      complete: true,
      jobs: [],
      listed: ['1/1'],
      absent: ['2/1'],
      endedSets: ['set-another'],
      budgetUntil: 1e300,
    },
  ],
  runnerEvents: [
    {
      events: [-9e15, -1, 9e15, 1e300].map((at) => ({
        kind: 'online',
        workflowId: 'runner-victim-aaaaaaaaaa',
        runnerName: 'x',
        at,
      })),
    },
    {
      events: [
        {
          kind: 'ended',
          workflowId: 'another',
          runnerName: 'another',
          at: Date.now(),
          outcome: 'errored',
          wasOnline: true,
          ranJob: true,
        },
      ],
    },
  ],
  runnerVersion: [
    { at: 1e300, version: '2.0.0' },
    { at: Date.now(), version: '2.0.0', jobsUntil: 'never' },
    { at: Date.now(), version: 'x'.repeat(10_000) },
  ],
  scaleSetReport: [
    // The set has no scale set.
    {
      at: Date.now(),
      position: { openedAt: 1, messageId: 1 },
      numbers: { assigned: 1_000, running: 0 },
      started: [],
      completed: [],
    },
    { at: 1e300, problem: 'x' },
  ],
  listenerChanged: [
    { input: { set: 'another' }, hash: 'x' },
    {
      hash: 'x',
      input: {
        set: 'another',
        scope: { kind: 'organization', name: 'acme' },
        credential: 'default',
        group: 'default',
        labels: [],
        name: 'x',
      },
    },
  ],
  podState: [{ uid: 'another', state: 'busy' }],
  replaceIdle: [{ runnerName: 'another', reason: 'x' }],
  stepPodCreated: [{ workflowId: 'another', pod: 'x' }],
  stepEnded: [
    { workflowId: 'another', firstRunId: 'r', outcome: 'succeeded', message: '', attempt: 1 },
    // The sender knows the step, and not its run.
    { workflowId: 'JOB-test-1', outcome: 'succeeded', message: '', attempt: 1, exitCode: 0 },
    ...['', 'r', null, randomUUID()].map((firstRunId) => ({
      workflowId: 'JOB-test-1',
      firstRunId,
      outcome: 'succeeded',
      message: '',
      attempt: 1,
      exitCode: 0,
    })),
  ],
  command: [{ workflowId: 'no-such-command\u0000', command: { command: 'drain' } }],
  commandReply: [{ error: { type: 5, message: {} } }, { result: null }],
  revision: [{ commit: '../x', at: new Date().toISOString(), job: {} }],
  extendDeadline: [{ by: '1000h' }, { by: { toString: 5 } }],
};

/** What of each type is sent what. Those with which everybody may end a workflow are not here: `cancel` and `drain` in the last test. */
const ROWS: readonly (readonly [
  type: string,
  kind: 'signal' | 'update' | 'query',
  name: string,
])[] = [
  [RUNNER_WORKFLOW, 'signal', 'jobEvent'],
  [RUNNER_WORKFLOW, 'signal', 'podState'],
  [RUNNER_WORKFLOW, 'signal', 'replaceIdle'],
  [RUNNER_WORKFLOW, 'update', 'extendDeadline'],
  [RUNNER_WORKFLOW, 'query', 'status'],
  [RUNNER_SET_WORKFLOW, 'signal', 'jobEvents'],
  [RUNNER_SET_WORKFLOW, 'signal', 'queueChecked'],
  [RUNNER_SET_WORKFLOW, 'signal', 'runnerEvents'],
  [RUNNER_SET_WORKFLOW, 'signal', 'runnerVersion'],
  [RUNNER_SET_WORKFLOW, 'signal', 'scaleSetReport'],
  [RUNNER_SET_WORKFLOW, 'signal', 'command'],
  [RUNNER_SET_WORKFLOW, 'query', 'status'],
  [RUNNER_SET_WORKFLOW, 'query', 'declaration'],
  [RUNNER_SET_WORKFLOW, 'query', 'jobs'],
  [JOB_WORKFLOW, 'signal', 'stepPodCreated'],
  [JOB_WORKFLOW, 'signal', 'stepEnded'],
  [JOB_WORKFLOW, 'query', 'status'],
  [JOB_GROUP_WORKFLOW, 'signal', 'revision'],
  [JOB_GROUP_WORKFLOW, 'query', 'status'],
  [SET_COMMAND_WORKFLOW, 'signal', 'commandReply'],
  [SCALE_SET_LISTENER_WORKFLOW, 'signal', 'listenerChanged'],
];
const ENDING = ['signal:cancel', 'update:drain'];

await describeWithLab('users who send forged messages', { temporal: true }, (lab) => {
  let it: MemoryWorld;
  const started: WorkflowHandle[] = [];
  beforeAll(async () => void (it = await memoryWorld(lab)));
  afterEach(async () => {
    for (const handle of started.splice(0)) await handle.terminate().catch(() => undefined);
  });
  afterAll(async () => await it.world.close());

  async function start(type: string, ...args: unknown[]): Promise<WorkflowHandle> {
    const workflowId = `victim-${randomUUID().slice(0, 8)}`;
    const { taskQueue } = it.world;
    const handle = await it.world.client.workflow.start(type, { workflowId, taskQueue, args });
    started.push(handle);
    return handle;
  }

  /** Its first step is done. */
  async function answering(handle: WorkflowHandle): Promise<WorkflowHandle> {
    await until(
      'it to answer',
      async () =>
        await handle.query('status').then(
          () => true,
          () => false,
        ),
    );
    return handle;
  }

  /** A workflow of each type that is at work. */
  const VICTIMS: Readonly<Record<string, () => Promise<WorkflowHandle>>> = {
    [RUNNER_WORKFLOW]: async () => {
      const run = await it.world.start();
      started.push(run.handle);
      it.compute.start(await run.pod());
      await run.reaches('Idle', ({ phase }) => phase === 'Idle');
      return run.handle;
    },
    [RUNNER_SET_WORKFLOW]: async () => {
      const set = { name: 'victim', template: TEMPLATE, replicas: 0 };
      const handle = await answering(await start(RUNNER_SET_WORKFLOW, set));
      await until(
        'its first list of runners',
        async () =>
          (await querySetStatus(it.world.client, handle.workflowId)).listPendingSince === undefined,
      );
      return handle;
    },
    [JOB_WORKFLOW]: async () => {
      const handle = await start(JOB_WORKFLOW, { name: 'web', test: [step('unit')] });
      await answering(handle);
      await until('its step to have a pod', async () => {
        const { steps } = await handle.query(contract.jobStatusQuery);
        return steps[0]?.pod !== undefined;
      });
      return handle;
    },
    [JOB_GROUP_WORKFLOW]: async () => await answering(await start(JOB_GROUP_WORKFLOW)),
    // Of a set that no worker runs, on a CI server that does not answer.
    [SCALE_SET_LISTENER_WORKFLOW]: async () => {
      const set = `mute-${randomUUID().slice(0, 8)}`;
      const { client, taskQueue } = it.world;
      started.push(
        await client.workflow.start(RUNNER_SET_WORKFLOW, {
          workflowId: contract.setWorkflowId(set),
          taskQueue: 'nobody',
          memo: { [contract.SET_CAPACITY_MEMO]: 0 },
        }),
      );
      const away = async (): Promise<never> => {
        throw new CiServerError('unavailable', 'away');
      };
      Object.assign(it.ci, { scaleSets: { ensure: away } });
      const handle = await client.workflow.start(SCALE_SET_LISTENER_WORKFLOW, {
        workflowId: contract.scaleSetListenerWorkflowId(set),
        taskQueue,
        args: [
          {
            set,
            scope: { kind: 'organization', name: 'acme' },
            credential: 'default',
            group: 'default',
            labels: [],
            name: set,
          },
        ],
      });
      started.push(handle);
      await until(
        'it to listen',
        async () => ((await handle.describe()).raw.pendingActivities?.length ?? 0) === 1,
      );
      return handle;
    },
    // Of a set that no worker runs, so that it waits for the answer.
    [SET_COMMAND_WORKFLOW]: async () => {
      const set = `mute-${randomUUID().slice(0, 8)}`;
      started.push(
        await it.world.client.workflow.start(RUNNER_SET_WORKFLOW, {
          workflowId: contract.setWorkflowId(set),
          taskQueue: 'nobody',
        }),
      );
      return await start(SET_COMMAND_WORKFLOW, { set, command: 'resume' });
    },
  };

  const bodiesFor = (name: string, id: string): unknown[] =>
    [...GARBAGE, ...(LIES[name] ?? [])].map((body) =>
      JSON.parse(JSON.stringify(body).replaceAll('JOB-', `${id}-`)),
    );

  async function send(
    handle: WorkflowHandle,
    kind: 'signal' | 'update' | 'query',
    name: string,
    body: unknown,
  ): Promise<void> {
    if (kind === 'signal') return await handle.signal(name, body);
    const sent =
      kind === 'update'
        ? handle.executeUpdate(name, { args: [body] })
        : handle.query(name, body as string);
    await sent.then(
      () => {
        if (kind === 'update') throw new Error(`${name} took ${JSON.stringify(body)}`);
      },
      () => undefined,
    );
  }

  /** What people see of it, but for times. */
  async function shown(type: string, handle: WorkflowHandle): Promise<unknown> {
    if (type === SET_COMMAND_WORKFLOW || type === SCALE_SET_LISTENER_WORKFLOW)
      return (await handle.describe()).status.name;
    const status: unknown = await handle.query('status');
    return JSON.parse(JSON.stringify(status).replaceAll(/"\d{4}-\d\d-\d\dT[^"]+"/g, '"time"'));
  }

  test.each(ROWS)('%s, %s %s: nothing changes, and nothing stops', async (type, kind, name) => {
    const handle = await VICTIMS[type]!();
    const before = await shown(type, handle);
    const { created, deletions } = it.compute;
    const made = { created: created.length, deletions: deletions.length };
    for (const body of bodiesFor(name, handle.workflowId)) await send(handle, kind, name, body);
    expect(await shown(type, handle)).toEqual(before);
    expect({ created: created.length, deletions: deletions.length }).toEqual(made);
    const { events } = await handle.fetchHistory();
    expect(
      (events ?? []).flatMap(({ workflowTaskFailedEventAttributes: failed }) =>
        failed === undefined || failed === null ? [] : [failed.failure?.message],
      ),
    ).toEqual([]);
  });

  test.each(GARBAGE)(
    'cancel and drain end a runner in good order, whatever they say: %j',
    async (body) => {
      for (const tell of [
        async (handle: WorkflowHandle) => await handle.signal('cancel', body),
        async (handle: WorkflowHandle) =>
          void (await handle.executeUpdate('drain', { args: [body] })),
      ]) {
        const handle = await VICTIMS[RUNNER_WORKFLOW]!();
        await tell(handle);
        expect(await handle.result()).toMatchObject({
          outcome: expect.stringMatching(/^(aborted|succeeded)$/),
        });
      }
      expect(it.compute.deletions.filter(({ underJob }) => underJob)).toEqual([]);
    },
  );

  test('the table has every signal, update and query of the contract', () => {
    const defined = Object.values(contract).flatMap((value: unknown) =>
      isObject(value) && ['signal', 'update', 'query'].includes(String(value['type']))
        ? [`${String(value['type'])}:${String(value['name'])}`]
        : [],
    );
    const rows = ROWS.map(([, kind, name]) => `${kind}:${name}`);
    expect(new Set([...rows, ...ENDING])).toEqual(new Set(defined));
  });
});
