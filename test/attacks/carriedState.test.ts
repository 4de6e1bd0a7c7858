/**
 * Whoever may start a workflow gives it more than its input: the state that a run hands on to the next. Each run admits its input all the same, and
 * nothing that is handed on allows more than that.
 */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { WorkflowHandle } from '@temporalio/client';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  DEREGISTRATION_WORKFLOW,
  JOB_GROUP_WORKFLOW,
  JOB_WORKFLOW,
  RERUN_WORKFLOW,
  RUNNER_SET_WORKFLOW,
  RUNNER_WORKFLOW,
  SCALE_SET_LISTENER_WORKFLOW,
  SET_COMMAND_WORKFLOW,
  SWEEP_WORKFLOW,
  jobGroupStatusQuery,
  setStatusQuery,
  setWorkflowId,
  statusQuery,
  type RunnerStatus,
} from '../../core/contract/index.ts';
import { runnerHash } from '../../activities/compute/naming.ts';
import type { PodView } from '../../core/domain/pod.ts';
import { describeWithLab } from '../support/lab.ts';
import { memoryWorld, type MemoryWorld } from '../support/memoryWorld.ts';
import { SHORT_INTERVALS } from '../support/shortIntervals.ts';
import { rejectionReason } from '../support/untrustedWorker.ts';
import { until } from '../support/until.ts';

const INPUT = { organization: 'acme', intervals: SHORT_INTERVALS };
const HOUR_MS = 3_600_000;

await describeWithLab('carried state that an attacker has written', { temporal: true }, (lab) => {
  let it: MemoryWorld;
  beforeEach(async () => void (it = await memoryWorld(lab)));
  afterEach(async () => await it.world.close());

  async function start(
    type: string,
    args: readonly unknown[],
    workflowId = `attack-${randomUUID().slice(0, 8)}`,
  ): Promise<WorkflowHandle> {
    return await it.world.client.workflow.start(type, {
      workflowId,
      taskQueue: it.world.taskQueue,
      args: [...args],
    });
  }
  const invalid = expect.stringMatching(/^Invalid input: /);

  /** A runner of somebody's, at work. */
  async function victim(): Promise<{ pod: PodView; runnerName: string; runnerId: string }> {
    const run = await it.world.start({ ephemeral: false });
    const pod = await run.pod();
    it.compute.start(pod);
    const { runnerName } = await run.reaches('Idle', ({ phase }) => phase === 'Idle');
    const runnerId = it.ci.connect(runnerName);
    it.ci.setBusy(runnerName, true);
    it.compute.startJob(pod);
    await run.reaches('Busy', ({ phase }) => phase === 'Busy');
    return { pod: it.compute.pods.get(pod)!, runnerName, runnerId };
  }

  /** What a run hands on, but for what the attack puts in its place. */
  async function carried(runner: object, more: object = {}): Promise<object> {
    return {
      runnerName: 'x',
      location: await it.compute.location(),
      createdAtMs: Date.now(),
      attempt: 1,
      phases: [],
      replacements: [],
      unregisterAttempts: 0,
      usedJobMs: 0,
      neverStartedInARow: 0,
      shortLivedInARow: 0,
      notifiedOnline: true,
      runner: { online: true, hadJob: false, jobs: { completed: [], latestEventAt: 0 }, ...runner },
      ...more,
    };
  }
  const pod = (fields: object): object => ({
    name: 'p',
    uid: 'u',
    createdAt: new Date().toISOString(),
    startedAt: new Date().toISOString(),
    scheduled: true,
    ended: false,
    deleted: false,
    terminating: false,
    online: true,
    ...fields,
  });
  const FORCE = { cancel: { mode: 'force', reason: 'mine', by: 'cancelled' } };

  /** Types of the failures that the tries of a workflow's activities ended with. */
  async function failures(handle: WorkflowHandle): Promise<string[]> {
    const { raw } = await handle.describe();
    const pending = (raw.pendingActivities ?? []).map(
      ({ lastFailure }) => lastFailure?.applicationFailureInfo?.type ?? '',
    );
    const { events } = await handle.fetchHistory();
    const failed = (events ?? []).map(
      ({ activityTaskFailedEventAttributes: failed }) =>
        failed?.failure?.applicationFailureInfo?.type ?? '',
    );
    return [...pending, ...failed];
  }
  const meets = async (handle: WorkflowHandle, type: string): Promise<void> => {
    let met: string[] = [];
    await until(
      `the attack to meet ${type}`,
      async () => (met = await failures(handle)).includes(type),
      () => met.join(),
    );
  };

  describe(RUNNER_WORKFLOW, () => {
    test('does not stop the pod of another', async () => {
      const { pod: theirs } = await victim();
      const { workflowId: _theirs, ...snapshot } = theirs;
      const handle = await start(RUNNER_WORKFLOW, [
        INPUT,
        await carried({ pod: snapshot, id: 'none' }, FORCE),
      ]);
      await meets(handle, 'ForeignObject');
      expect(it.compute.deletions).toEqual([]);
      expect(it.compute.pods.get(theirs.name)).toMatchObject({ terminating: false });
    });

    test('does not remove the registration of another', async () => {
      const { runnerId, runnerName } = await victim();
      it.ci.setBusy(runnerName, false);
      const handle = await start(RUNNER_WORKFLOW, [
        INPUT,
        await carried({ pod: pod({}), id: runnerId }, { runnerName, ...FORCE }),
      ]);
      await meets(handle, 'ForeignRegistration');
      expect(it.ci.registrations.has(runnerId)).toBe(true);
      expect(it.ci.count('remove')).toBe(0);
    });

    test('provides neither a spec nor an identity', async () => {
      const { pod: theirs } = await victim();
      const { workflowId } = theirs;
      const handle = await start(RUNNER_WORKFLOW, [
        { ...INPUT, name: 'mine' },
        await carried(
          {
            pod: pod({}),
            identity: { workflowId, firstRunId: 'r', attempt: 1 },
          },
          {
            spec: { name: 'theirs', timeouts: {}, jobTimeoutCapMs: 1e12 },
            workflowId,
            firstRunId: 'r',
          },
        ),
      ]);
      const { firstExecutionRunId: firstRunId = '' } = handle as { firstExecutionRunId?: string };
      const hash = runnerHash({ workflowId: handle.workflowId, firstRunId });
      await until(
        'the name to be of its own admission',
        async () => (await handle.query<RunnerStatus>(statusQuery)).runnerName === `mine-${hash}`,
      );
    });

    test('gets no more time than its admission allows', async () => {
      const nowMs = Date.now();
      const workflowId = `runner-${randomUUID()}`;
      // There, so that the runner goes on waiting.
      it.compute.pods.set('p', { ...(pod({}) as PodView), workflowId });
      const args = [
        { ...INPUT, timeouts: { jobTimeout: '1h' } },
        await carried(
          {
            pod: pod({}),
            busySince: nowMs + 1_000 * HOUR_MS,
            jobDeadline: nowMs + 9_000 * HOUR_MS,
          },
          { createdAtMs: nowMs + 1_000 * HOUR_MS },
        ),
      ];
      const handle = await start(RUNNER_WORKFLOW, args, workflowId);
      let untilMs = Number.NaN;
      await until('it to wait for its job', async () => {
        const { waitingUntil, waitingFor } = await handle.query<RunnerStatus>(statusQuery);
        untilMs = Date.parse(waitingUntil ?? '');
        return waitingFor === 'its job to end';
      });
      // The cap of one job, where the worker sets no other, counted from now.
      expect(untilMs).toBeLessThanOrEqual(Date.now() + 24 * HOUR_MS);
    });

    test.each<[what: string, state: () => Promise<unknown>]>([
      ['what is no state', async () => 'x'],
      ['a state without a pod', async () => await carried({})],
      ['a pod that has ended', async () => await carried({ pod: pod({ ended: true }) })],
      ['a pod without a UID', async () => await carried({ pod: { ...pod({}), uid: undefined } })],
      ['the state of an older version', async () => ({ spec: { name: 'x' }, runner: {} })],
      [
        'a location that is none',
        async () => await carried({ pod: pod({}) }, { location: { compute: 'kubernetes' } }),
      ],
      ['an attempt that is none', async () => await carried({ pod: pod({}) }, { attempt: -1 })],
    ])('%s is rejected', async (_what, state) => {
      const handle = await start(RUNNER_WORKFLOW, [INPUT, await state()]);
      expect(await rejectionReason(handle.result())).toEqual(invalid);
    });

    test.each<[what: string, input: unknown]>([
      ['none', {}],
      ['one that no worker could have admitted', { organization: '..' }],
    ])('the input is still validated: %s', async (_what, input) => {
      const handle = await start(RUNNER_WORKFLOW, [
        input,
        await carried({ pod: pod({}) }, { spec: INPUT }),
      ]);
      expect(await rejectionReason(handle.result())).toEqual(invalid);
    });

    test('with a spec that the policy rejects it only drains, and deletes only its own objects', async () => {
      const { pod: theirs } = await victim();
      it.compute.unsound.push('pod: not allowed by "privileged"');
      const { workflowId: _theirs, ...snapshot } = theirs;
      const handle = await start(RUNNER_WORKFLOW, [
        { ...INPUT, image: 'theirs' },
        await carried({ pod: snapshot }),
      ]);
      await until('it to drain, and say why', async () => {
        const { cancel } = await handle.query<RunnerStatus>(statusQuery);
        return cancel?.mode === 'drain' && cancel.reason.includes('not allowed by "privileged"');
      });
      expect(it.compute.deletions).toEqual([]);
      await handle.signal('cancel', { mode: 'force' });
      await meets(handle, 'ForeignObject');
      expect(it.compute.deletions).toEqual([]);
    });
  });

  describe(RUNNER_SET_WORKFLOW, () => {
    const declaration = (more: object = {}): object => ({
      name: 'mine',
      template: INPUT,
      replicas: 0,
      ...more,
    });
    const facts = {
      at: Date.now() + 1_000 * HOUR_MS,
      health: { failures: 0, probes: 0 },
      desired: 50,
      asked: 0,
      demandedQueued: 0,
      full: false,
      limited: { jobs: 0, runners: 0 },
      peaks: [],
    };
    const state = {
      holds: ['runner-theirs'],
      guards: [],
      forwardedEvents: [],
      commandsDone: [],
      jobs: { active: [], names: [], completed: [], startedTotal: 0, completedTotal: 0 },
      runners: { generations: [], runners: [], ended: [] },
    };

    test('is determined by its input, not by the carried state', async () => {
      const spec = { name: 'theirs', bounds: { kind: 'fixed', replicas: 50 }, template: INPUT };
      const handle = await start(
        RUNNER_SET_WORKFLOW,
        [declaration(), { ...state, facts: { ...facts, spec, declaration: spec, pausedBy: 'x' } }],
        setWorkflowId('mine'),
      );
      let status: object | undefined;
      await until('its first step to be done', async () => {
        status = await handle.query(setStatusQuery).catch(() => undefined);
        return status !== undefined && !('awaitingAdmission' in status);
      });
      expect(status).toMatchObject({
        name: 'mine',
        max: 0,
        desired: 0,
        holds: [],
      });
      expect(it.compute.created).toEqual([]);
    });

    test.each<[what: string, args: unknown[]]>([
      ['no declaration', [{}, { ...state, facts }]],
      ['a state that is none', [declaration(), { facts: 5 }]],
    ])('%s is rejected', async (_what, args) => {
      const handle = await start(RUNNER_SET_WORKFLOW, args, setWorkflowId('mine'));
      expect(await rejectionReason(handle.result())).toEqual(invalid);
    });
  });

  describe(JOB_GROUP_WORKFLOW, () => {
    test.each<[what: string, state: unknown]>([
      ['what is no state', 'x'],
      ['a number that is none', { runNumber: 'x' }],
      [
        'a run that waits, and one that is under way',
        {
          runNumber: 7,
          commit: 'abc',
          queued: true,
          running: { runNumber: 7, superseded: false },
        },
      ],
    ])('%s starts nothing', async (_what, state) => {
      const handle = await start(JOB_GROUP_WORKFLOW, [state]);
      const { queued, running } = await handle.query(jobGroupStatusQuery);
      expect({ queued, running }).toEqual({ queued: false });
      await handle.terminate();
    });
  });

  /** They hand nothing on: what comes after the input is not read. */
  test.each<[type: string, input: unknown]>([
    [JOB_WORKFLOW, { name: 'web' }],
    [DEREGISTRATION_WORKFLOW, { organization: '..', runner: { name: 'x' } }],
    [RERUN_WORKFLOW, { organization: 'acme', runnerName: '..' }],
    [SCALE_SET_LISTENER_WORKFLOW, { set: '..' }],
    [SET_COMMAND_WORKFLOW, { set: '..', command: 'resume' }],
    [SWEEP_WORKFLOW, { maxPodAge: 'x' }],
  ])('%s admits its input before anything else', async (type, input) => {
    const handle = await start(type, [input, [{ spec: {}, marks: [] }]]);
    expect(await rejectionReason(handle.result())).toEqual(invalid);
  });

  test('the table has every workflow type', () => {
    const index = readFileSync(new URL('../../workflows/index.ts', import.meta.url), 'utf8');
    const types = [...index.matchAll(/export \{ (\w+) \}/g)].map(([, type]) => type);
    expect(new Set(types)).toEqual(
      new Set([
        RUNNER_WORKFLOW,
        RUNNER_SET_WORKFLOW,
        JOB_GROUP_WORKFLOW,
        JOB_WORKFLOW,
        DEREGISTRATION_WORKFLOW,
        RERUN_WORKFLOW,
        SCALE_SET_LISTENER_WORKFLOW,
        SET_COMMAND_WORKFLOW,
        SWEEP_WORKFLOW,
      ]),
    );
  });
});
