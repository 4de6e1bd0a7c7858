/** Repairs read the current state first, which determines the action. test/cluster/sweep.test.ts tests them on real components. */
import { describe, expect, test } from '@jest/globals';
import type { OwnedDeletion, OwnedObjects } from '../../../activities/shared/ownedObjects.ts';
import { CiServerError } from '../../../activities/ports/ciServerError.ts';
import type { CiRunner } from '../../../activities/ports/ciServer.ts';
import { executePlan } from '../../../activities/sweep/executePlan.ts';
import {
  repairPod,
  repairRegistration,
  repairResource,
  replaceUnresponsive,
  stopStep,
  terminateStuckRunner,
  type RepairTools,
} from '../../../activities/sweep/repairs.ts';
import type { RunnerWorkflowInput } from '../../../activities/sweep/runnerWorkflows.ts';
import { ORPHANED_POD_MESSAGE, type SweepMark } from '../../../core/contract/index.ts';
import type { Finding } from '../../../core/sweep/decideSweep.ts';
import type {
  OwnerWorkflow,
  RunnerWorkflow,
  ObservedRegistration,
} from '../../../core/sweep/facts.ts';
import { objectMark } from '../../../core/sweep/objectMark.ts';
import type { OwnedObject } from '../../../core/sweep/ownedObject.ts';
import { FakeCiServer } from '../../support/fakeCiServer.ts';
import { FakeCompute } from '../../support/fakeCompute.ts';
import {
  MINUTE,
  NOW,
  RUNNING,
  SPEC,
  TERMINATED,
  UNKNOWN,
  ago,
  ghost,
  runnerWorkflow,
  object,
  pod,
} from '../../support/sweptObjects.ts';

/** The state that the repairs read, and their actions. */
class Seen {
  readonly ciServer = new FakeCiServer();
  readonly compute = new FakeCompute();
  now: OwnedObject | undefined;
  facts: OwnerWorkflow = TERMINATED;
  /** Whether the workflow has a running runner with the requested name. */
  runs = false;
  input: RunnerWorkflowInput | undefined = {
    replacesLost: false,
    at: { scope: { kind: 'organization', name: 'acme' }, credential: 'default' },
  };
  /** Description of the runner's workflow. */
  described = {
    status: { name: 'RUNNING' },
    runId: 'r',
    raw: { pendingWorkflowTask: { scheduledTime: { seconds: 1 } } },
  };
  pollers: object[] = [];
  readonly deletions: OwnedDeletion[] = [];
  /** The job of the step, if it is one. */
  job: RunnerWorkflow['job'];
  readonly terminations: string[] = [];
  readonly signals: unknown[][] = [];
  readonly handOffs: { id: string; input: unknown; summary: string }[] = [];
  readonly marks: (string | null)[] = [];

  tools(): RepairTools {
    const owned: Partial<OwnedObjects> = {
      now: () => Date.now(),
      get: async () => this.now,
      mark: async (_object, text) => void this.marks.push(text),
      delete: async (_object, how = {}) => (this.deletions.push(how), 'terminating'),
    };
    const client = {
      options: { namespace: 'default' },
      withDeadline: async (_deadline: number, run: () => Promise<unknown>) => await run(),
      workflowService: { describeTaskQueue: async () => ({ pollers: this.pollers }) },
      workflow: {
        start: async (
          _type: string,
          {
            workflowId,
            args,
            staticSummary,
          }: { workflowId: string; args: unknown[]; staticSummary: string },
        ) => void this.handOffs.push({ id: workflowId, input: args[0], summary: staticSummary }),
        getHandle: () => ({
          terminate: async (reason: string) => void this.terminations.push(reason),
          signal: async ({ name }: { name: string }, body: unknown) =>
            void this.signals.push([name, body]),
        }),
      },
    };
    const workflows = {
      owner: async () => this.facts,
      runs: async () => this.runs,
      describe: async () => this.described,
      input: async () => this.input,
      job: async () => this.job,
    };
    const logger = { info: () => undefined, warn: () => undefined };
    return {
      sources: {
        compute: this.compute,
        ciServers: this.ciServer,
        client,
        taskQueue: 'q',
        logger,
        resources: 'required',
      },
      spec: SPEC,
      owned,
      workflows,
    } as unknown as RepairTools;
  }
}

const CHANGED = { kind: 'skipped', why: 'changed' };
const marked = { mark: objectMark('orphaned_pod', 'why', NOW - MINUTE) };
/** A creation time that is old by the clock of the repairs. */
const aliveOrphan = pod({}, { ...marked, registration: undefined as never });

describe('a pod', () => {
  const repair = async (seen: Seen, found = aliveOrphan) =>
    await repairPod(seen.tools(), {
      as: 'orphaned_pod',
      reason: 'why',
      subject: 'object',
      object: found,
      step: 'repair',
    });

  test.each<[what: string, now: OwnedObject | undefined, facts: OwnerWorkflow, expected: object]>([
    ['is gone', undefined, TERMINATED, CHANGED],
    ['has lost its mark', pod(), TERMINATED, CHANGED],
    ['has a running workflow, because visibility was late', aliveOrphan, RUNNING, CHANGED],
    [
      'is held since',
      { ...aliveOrphan, onHold: true },
      TERMINATED,
      { kind: 'skipped', why: 'on_hold' },
    ],
    [
      'is being evicted since',
      pod({ disruptionReason: 'EvictionByEvictionAPI' }, marked),
      TERMINATED,
      { kind: 'skipped', why: 'in_transition' },
    ],
  ])('that %s is not changed', async (_what, now, facts, expected) => {
    const seen = new Seen();
    Object.assign(seen, { now, facts });
    expect(await repair(seen)).toEqual(expected);
    expect([seen.deletions, seen.ciServer.calls, seen.handOffs]).toEqual([[], [], []]);
  });

  test('under the supervisor gets the reason, so that it does not wait for its job', async () => {
    const seen = new Seen();
    seen.now = aliveOrphan;
    expect(await repair(seen)).toEqual({ kind: 'repaired' });
    expect(seen.deletions).toEqual([{ stopReason: 'cancelled' }]);
    expect(seen.marks).toEqual([expect.stringContaining('orphaned_pod: why')]);
  });

  test('without supervisor is stopped with its own grace period', async () => {
    const seen = new Seen();
    const { online: _, busy: __, ...silent } = aliveOrphan.pod!;
    seen.now = { ...aliveOrphan, pod: silent };
    await repair(seen);
    expect(seen.deletions).toEqual([{}]);
  });

  test('that has exceeded its grace period by a minute is deleted without one', async () => {
    const seen = new Seen();
    seen.now = pod({ terminating: true, terminationDeadline: ago(MINUTE) }, marked);
    await repair(seen);
    expect(seen.deletions).toEqual([{ gracePeriodSeconds: 0 }]);
  });

  test('whose registration has no scope uses the scope of its workflow’s input', async () => {
    const seen = new Seen();
    seen.ciServer.connect('w-0123456789', false);
    seen.now = pod({}, { ...marked, registration: { name: 'w-0123456789' } });
    expect(await repair(seen)).toMatchObject({
      kind: 'repaired',
      note: expect.stringContaining('was removed'),
    });
    expect(seen.ciServer.registrations.size).toBe(0);
    expect(seen.handOffs).toEqual([
      {
        id: 'deregistration-w-0123456789',
        summary: ORPHANED_POD_MESSAGE,
        input: {
          organization: 'acme',
          credential: 'default',
          runner: { name: 'w-0123456789' },
          reason: ORPHANED_POD_MESSAGE,
        },
      },
    ]);
  });

  test.each([
    ['of another runner', 'w-9999999999', 'w-0123456789'],
    ['that Holdfast did not create', 'mine', 'mine'],
  ])('with the registration %s is stopped, and that stays', async (_what, registered, name) => {
    const seen = new Seen();
    const id = seen.ciServer.connect(registered, true);
    const scope = { kind: 'organization', name: 'acme' } as const;
    seen.now = pod({}, { ...marked, registration: { name, id, scope, credential: 'default' } });
    expect(await repair(seen)).toMatchObject({ kind: 'repaired' });
    expect([...seen.ciServer.registrations.keys()]).toEqual([id]);
    expect(seen.deletions).toHaveLength(1);
  });

  test('is stopped although the CI server does not respond, and its registration handed off', async () => {
    const seen = new Seen();
    seen.ciServer.script.push({
      method: 'find',
      answer: new CiServerError('unavailable', 'no answer'),
    });
    seen.now = pod(
      { ended: true },
      {
        ...marked,
        registration: {
          name: 'w-0123456789',
          id: '7',
          scope: { kind: 'organization', name: 'acme' },
          credential: 'default',
        },
      },
    );
    expect(await repair(seen)).toMatchObject({
      kind: 'repaired',
      note: expect.stringContaining('no answer'),
    });
    expect([seen.deletions, seen.handOffs.map(({ id }) => id)]).toEqual([
      [{}],
      ['deregistration-w-0123456789'],
    ]);
  });

  test('whose workflow is unknown to Temporal uses the scope of its annotations for the registration', async () => {
    const seen = new Seen();
    Object.assign(seen, { facts: UNKNOWN, input: undefined });
    seen.now = pod(
      {},
      {
        ...marked,
        registration: {
          name: 'w-0123456789',
          id: '7',
          scope: { kind: 'repository', name: 'acme/app' },
          credential: 'app',
        },
      },
    );
    await repair(seen);
    expect(seen.handOffs).toMatchObject([
      {
        input: {
          repository: 'acme/app',
          credential: 'app',
          runner: { name: 'w-0123456789', id: '7' },
        },
      },
    ]);
  });

  test('that had ended, with a removed registration, causes no hand-off', async () => {
    const seen = new Seen();
    seen.now = pod(
      { ended: true },
      {
        ...marked,
        registration: {
          name: 'w-0123456789',
          id: '7',
          scope: { kind: 'organization', name: 'acme' },
          credential: 'default',
        },
      },
    );
    expect(await repair(seen)).toEqual({ kind: 'repaired' });
    expect(seen.handOffs).toEqual([]);
  });
});

describe('a Secret', () => {
  const found = object({ mark: objectMark('orphaned_resource', 'why', NOW - MINUTE) });
  const repair = async (seen: Seen, pods: OwnedObject[] = []) =>
    await repairResource(
      seen.tools(),
      { as: 'orphaned_resource', reason: 'why', subject: 'object', object: found, step: 'repair' },
      async () => pods,
    );

  test('is deleted', async () => {
    const seen = new Seen();
    Object.assign(seen, { now: found, facts: UNKNOWN });
    expect([await repair(seen), seen.deletions]).toEqual([{ kind: 'repaired' }, [{}]]);
  });

  test.each<
    [
      what: string,
      now: OwnedObject | undefined,
      facts: OwnerWorkflow,
      pods: OwnedObject[],
      expected: object,
    ]
  >([
    ['is gone', undefined, TERMINATED, [], CHANGED],
    ['has lost its mark', object(), TERMINATED, [], CHANGED],
    ['has a running workflow again', found, RUNNING, [], CHANGED],
    ['has a pod now', found, TERMINATED, [pod()], { kind: 'skipped', why: 'in_use' }],
  ])('that %s is not changed', async (_what, now, facts, pods, expected) => {
    const seen = new Seen();
    Object.assign(seen, { now, facts });
    expect([await repair(seen, pods), seen.deletions]).toEqual([expected, []]);
  });
});

const mark = (id: string): SweepMark => ({
  kind: 'orphaned_registration',
  key: `organization acme#${id}`,
  since: ago(MINUTE),
});
const ghostFinding = (
  registration: ObservedRegistration,
): Extract<Finding, { subject: 'registration' }> => ({
  as: 'orphaned_registration',
  reason: 'why',
  subject: 'registration',
  registration,
  step: 'repair',
  mark: mark(registration.id),
});

describe('a registration', () => {
  test.each<
    [
      what: string,
      now: Partial<CiRunner> | undefined,
      runs: boolean,
      expected: object,
      removals: number,
    ]
  >([
    ['is still without a runner', {}, false, { kind: 'repaired', note: 'removed' }, 1],
    ['is gone', undefined, false, CHANGED, 0],
    ['belongs to another runner', { name: 'another' }, false, CHANGED, 0],
    ['has a workflow now', {}, true, CHANGED, 0],
    ['is online now', { online: true }, false, { kind: 'skipped', why: 'online_or_busy' }, 0],
    ['is busy now', { busy: true }, false, { kind: 'skipped', why: 'online_or_busy' }, 0],
  ])('that %s', async (_what, now, runs, expected, removals) => {
    const seen = new Seen();
    seen.runs = runs;
    if (now !== undefined)
      seen.ciServer.registrations.set('7', {
        id: '7',
        name: 'w-0123456789',
        online: false,
        busy: false,
        ...now,
      });
    expect(await repairRegistration(seen.tools(), ghostFinding(ghost()))).toEqual(expected);
    expect(seen.ciServer.count('remove')).toBe(removals);
  });

  test('that is busy is left for the next sweep; other errors are reported', async () => {
    const seen = new Seen();
    seen.ciServer.registrations.set('7', {
      id: '7',
      name: 'w-0123456789',
      online: false,
      busy: false,
    });
    seen.ciServer.script.push(
      { method: 'remove', answer: new CiServerError('busy', '422') },
      { method: 'remove', answer: new CiServerError('unavailable', '502') },
    );
    expect(await repairRegistration(seen.tools(), ghostFinding(ghost()))).toEqual({
      kind: 'skipped',
      why: 'online_or_busy',
    });
    await expect(repairRegistration(seen.tools(), ghostFinding(ghost()))).rejects.toThrow('502');
  });
});

describe('a stuck runner', () => {
  const zombie = runnerWorkflow({ hasPoller: false, pods: [], phase: 'Busy' });
  const terminate = async (seen: Seen, pods: OwnedObject[] = []) =>
    await terminateStuckRunner(
      seen.tools(),
      {
        as: 'stuck_runner',
        reason: 'why',
        subject: 'runner',
        runner: zombie,
        step: 'terminate',
        mark: { kind: 'stuck_runner', key: 'w r', since: ago(MINUTE), unpolledSince: ago(MINUTE) },
      },
      async () => pods,
    );

  test('is terminated', async () => {
    const seen = new Seen();
    expect(await terminate(seen)).toMatchObject({ kind: 'repaired' });
    expect(seen.terminations).toEqual(['worker never came back; forced to fail']);
  });

  test.each<[what: string, change: (seen: Seen) => void, pods: OwnedObject[]]>([
    [
      'has a worker now',
      (seen) => seen.pollers.push({ lastAccessTime: { seconds: Date.now() / 1_000 } }),
      [],
    ],
    ['has a pod now', () => undefined, [pod()]],
    ['has ended', (seen) => (seen.described.status.name = 'COMPLETED'), []],
    ['is another run', (seen) => (seen.described.runId = 'r2'), []],
    ['has moved', (seen) => (seen.described.raw = {} as never), []],
    ['resumes its work', (seen) => (seen.input = { replacesLost: true }), []],
  ])('that %s is not changed', async (_what, change, pods) => {
    const seen = new Seen();
    change(seen);
    expect([await terminate(seen, pods), seen.terminations]).toEqual([CHANGED, []]);
  });
});

describe('a hanging runner', () => {
  const hung = runnerWorkflow({ registration: ghost({ hasRunner: true, hasPod: true }) });
  const replace = async (seen: Seen, pods: OwnedObject[] = [pod()]) =>
    await replaceUnresponsive(
      seen.tools(),
      {
        as: 'unresponsive_runner',
        reason: 'why',
        subject: 'runner',
        runner: hung,
        step: 'repair',
        mark: { kind: 'unresponsive_runner', key: 'w-0123456789', since: ago(MINUTE) },
      },
      async () => pods,
    );
  const listed = { id: '7', name: 'w-0123456789', online: false, busy: false };

  test('is replaced by its workflow', async () => {
    const seen = new Seen();
    seen.ciServer.registrations.set('7', listed);
    expect([await replace(seen), seen.signals, seen.terminations]).toEqual([
      { kind: 'repaired' },
      [['replaceIdle', { runnerName: 'w-0123456789', reason: 'why' }]],
      [],
    ]);
    expect(seen.ciServer.count('remove')).toBe(0);
  });

  test.each<
    [what: string, now: Partial<CiRunner> | undefined, pods: OwnedObject[], expected: object]
  >([
    ['is online now', { online: true }, [pod()], CHANGED],
    ['is busy now', { busy: true }, [pod()], CHANGED],
    ['is no longer registered', undefined, [pod()], CHANGED],
    ['has a pod that is busy now', {}, [pod({ busy: true })], CHANGED],
    ['has another pod now', {}, [pod({}, { registration: { name: 'w-0123456789-r2' } })], CHANGED],
    ['has lost its pod', {}, [], CHANGED],
    ['is held since', {}, [pod({}, { onHold: true })], { kind: 'skipped', why: 'on_hold' }],
  ])('that %s is not changed', async (_what, now, pods, expected) => {
    const seen = new Seen();
    if (now !== undefined) seen.ciServer.registrations.set('7', { ...listed, ...now });
    const outcome = await replace(seen, pods);
    expect(seen.signals).toEqual([]);
    expect(outcome).toEqual(expected);
  });
});

describe('a step whose job has ended', () => {
  const job = { workflowId: 'job-a', ...TERMINATED };
  const step = runnerWorkflow({ phase: 'Busy', job });
  const stop = async (seen: Seen, pods: OwnedObject[] = [pod()]) =>
    await stopStep(
      seen.tools(),
      {
        as: 'orphaned_step',
        reason: 'why',
        subject: 'runner',
        runner: step,
        step: 'repair',
        mark: { kind: 'orphaned_step', key: 'w r', since: ago(MINUTE) },
      },
      async () => pods,
    );

  test('gets the reason and is stopped', async () => {
    const seen = new Seen();
    seen.job = job;
    expect([await stop(seen), seen.signals, seen.terminations]).toEqual([
      { kind: 'repaired' },
      [['cancel', { mode: 'stop', reason: 'why' }]],
      [],
    ]);
  });

  test.each<[what: string, change: (seen: Seen) => void, pods: OwnedObject[], expected: object]>([
    ['has ended', (seen) => (seen.described.status.name = 'COMPLETED'), [pod()], CHANGED],
    ['is another run', (seen) => (seen.described.runId = 'r2'), [pod()], CHANGED],
    [
      'has a running job',
      (seen) => (seen.job = { workflowId: 'job-a', ...RUNNING }),
      [pod()],
      CHANGED,
    ],
    [
      'is held since',
      () => undefined,
      [pod({}, { onHold: true })],
      { kind: 'skipped', why: 'on_hold' },
    ],
  ])('that %s is not changed', async (_what, change, pods, expected) => {
    const seen = new Seen();
    seen.job = job;
    change(seen);
    expect([await stop(seen, pods), seen.signals]).toEqual([expected, []]);
  });
});

describe('a plan', () => {
  const ghosts = (count: number): Finding[] =>
    Array.from({ length: count }, (_, index) =>
      ghostFinding(ghost({ id: String(index), name: `w${index}-0123456789` })),
    );

  test('with more than 200 repairs executes the first 200; the others keep their marks', async () => {
    const seen = new Seen();
    const done = await executePlan(seen.tools(), {
      findings: ghosts(203),
      unmark: [],
      skipped: {},
    });
    expect(seen.ciServer.count('find')).toBe(200);
    expect(done.skipped.filter((why) => why === 'deferred')).toHaveLength(3);
    expect(done.marks).toEqual(['200', '201', '202'].map(mark));
  });

  test('that is cancelled starts nothing more', async () => {
    const seen = new Seen();
    const tools = seen.tools();
    const stop = new AbortController();
    stop.abort(new Error('SIGTERM'));
    await expect(
      executePlan(
        { ...tools, sources: { ...tools.sources, signal: stop.signal } },
        { findings: ghosts(3), unmark: [], skipped: {} },
      ),
    ).rejects.toThrow('SIGTERM');
    expect(seen.ciServer.calls).toEqual([]);
  });
});
