import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { describeWithLab } from '../support/lab.ts';
import { FakeCiServer } from '../support/fakeCiServer.ts';
import { FakeCompute } from '../support/fakeCompute.ts';
import { holdfastWorld, type HoldfastWorld, type RunnerRun } from '../support/holdfastWorld.ts';
import type { InputErrorCode, RunnerInput } from '../../core/contract/index.ts';
import type { PodView, SupervisorRecord } from '../../core/domain/pod.ts';

const STATE_CLAIM = { name: 'state', mountPath: '/state', storage: '1Gi' };

const COMMAND = { ciServer: 'none', command: ['work'] } as const satisfies Partial<RunnerInput>;
const RESUMING = {
  ...COMMAND,
  onTerm: 'checkpoint',
  onEviction: 'resume',
  volumeClaims: [STATE_CLAIM],
} as const satisfies Partial<RunnerInput>;
const EVICTED = { terminating: true, disruptionReason: 'EvictionByEvictionAPI' } as const;

await describeWithLab('a command without a CI server', { temporal: true }, (lab) => {
  let compute: FakeCompute;
  let ci: FakeCiServer;
  let world: HoldfastWorld;
  let kept: { pod: string; workflowId: string; text: string }[];

  beforeEach(async () => {
    compute = new FakeCompute();
    ci = new FakeCiServer();
    kept = [];
    const podLogs = {
      maxBytes: 100,
      keep: async (of: { pod: string; workflowId: string }, text: string) =>
        void kept.push({ ...of, text }),
      failed: (_of: object, error: unknown) => {
        throw error;
      },
    };
    const timeoutPolicy = {
      default: { jobTimeout: '1h' },
      scopes: { acme: { jobTimeoutCap: '48h' } },
    };
    world = await holdfastWorld(lab.temporal?.address ?? '', {
      compute,
      ciServers: ci,
      podLogs,
      timeoutPolicy,
    });
  });
  afterEach(async () => await world.close());

  /** As the supervisor's pods are: they tell that the command runs, and how it ended. */
  function startCommand(pod: string): void {
    compute.change(pod, {
      scheduled: true,
      node: 'node-1',
      startedAt: new Date().toISOString(),
      online: true,
    });
  }
  const endCommand = (
    pod: string,
    code: number,
    record: SupervisorRecord,
    more: Partial<PodView> = {},
  ): void =>
    compute.change(pod, { ended: true, exit: { code, oomKilled: false, record }, ...more });

  async function begun(input: Partial<RunnerInput>): Promise<{ run: RunnerRun; pod: string }> {
    const run = await world.start(input);
    const pod = await run.pod();
    startCommand(pod);
    await run.reaches('Busy', (status) => status.phase === 'Busy');
    return { run, pod };
  }

  async function nextAttempt(run: RunnerRun, attempt: number): Promise<string> {
    const { pod = '' } = await run.reaches(
      `attempt ${attempt}`,
      (status) => status.attempt === attempt && status.pod !== undefined,
    );
    startCommand(pod);
    return pod;
  }

  test('runs once, without a Secret or a registration', async () => {
    const { run, pod } = await begun(COMMAND);
    endCommand(pod, 0, {});
    const result = await run.result();
    expect(result).toMatchObject({
      outcome: 'succeeded',
      exitCode: 0,
      attempt: 1,
      unregisterAttempts: 0,
    });
    expect(result.phases.map(({ phase }) => phase)).toEqual([
      'Provisioning',
      'Busy',
      'TearingDown',
      'Gone',
    ]);
    expect({ ci: ci.calls, secrets: compute.secrets.size, pods: compute.pods.size, kept }).toEqual({
      ci: [],
      secrets: 0,
      pods: 0,
      kept: [],
    });
  });

  test.each<[string, number, SupervisorRecord, Partial<PodView>, object]>([
    ['fails', 3, {}, {}, { outcome: 'failed', exitCode: 3 }],
    [
      'runs into its own timeout',
      127,
      { reason: 'timeout' },
      {},
      { outcome: 'aborted', cause: 'run_timeout' },
    ],
    ['is evicted', 143, { reason: 'cancelled' }, EVICTED, { outcome: 'errored', cause: 'evicted' }],
    [
      'is evicted and exits with 0 half-way',
      0,
      { reason: 'cancelled' },
      EVICTED,
      { outcome: 'errored', cause: 'evicted' },
    ],
    ['is evicted and had ended by itself', 0, {}, EVICTED, { outcome: 'succeeded' }],
    [
      'is stopped from inside its pod',
      0,
      { reason: 'cancelled' },
      {},
      { outcome: 'errored', cause: 'agent_lost' },
    ],
  ])('that %s', async (_what, code, record, more, expected) => {
    const { run, pod } = await begun(COMMAND);
    endCommand(pod, code, record, more);
    expect(await run.result()).toMatchObject(expected);
  });

  test('cancelled: stopped immediately, with the reason', async () => {
    const { run } = await begun({ ...RESUMING });
    await run.handle.signal('cancel', 'enough');
    expect(await run.result()).toMatchObject({ outcome: 'aborted', cause: 'cancelled' });
    expect(compute.deletions[0]).toMatchObject({
      stopReason: 'cancelled',
      gracePeriodSeconds: undefined,
    });
    expect(compute.deletedClaims).toEqual(['state']);
  });

  test('cancelled if SIGTERM means a drain: a pod without the order in time has the grace period of a stop', async () => {
    const { run } = await begun({
      ...COMMAND,
      onTerm: 'drain',
      stop: { drainTimeout: '10m', signalTimeout: '30s' },
    });
    await run.handle.signal('cancel', 'enough');
    expect(await run.result()).toMatchObject({ outcome: 'aborted', cause: 'cancelled' });
    expect(compute.deletions[0]).toMatchObject({ stopReason: 'cancelled', gracePeriodSeconds: 40 });
  });

  test('drained: it can complete', async () => {
    const { run, pod } = await begun(COMMAND);
    await run.handle.executeUpdate('drain', { args: [{ reason: 'node maintenance' }] });
    await run.reaches('Draining', (status) => status.phase === 'Draining');
    expect(compute.deletions).toEqual([]);
    endCommand(pod, 0, {});
    expect(await run.result()).toMatchObject({
      outcome: 'succeeded',
      message: expect.stringContaining('node maintenance'),
    });
  });

  test('the workflow enforces a timeout that the pod does not keep', async () => {
    compute.probes = false;
    const run = await world.start({ ...COMMAND, timeouts: { jobTimeout: '300ms' } });
    compute.start(await run.pod());
    expect(await run.result()).toMatchObject({ outcome: 'aborted', cause: 'run_timeout' });
  });

  test('resumes after each eviction, and its claim is deleted at the end', async () => {
    const { run, pod } = await begun(RESUMING);
    endCommand(pod, 143, { reason: 'evicted' }, EVICTED);
    const second = await nextAttempt(run, 2);
    compute.vanish(second);
    const third = await nextAttempt(run, 3);
    endCommand(third, 0, { reason: 'evicted' }, EVICTED);
    const result = await run.result();
    expect(result).toMatchObject({
      outcome: 'succeeded',
      attempt: 3,
      replacements: [{ cause: 'evicted' }, { cause: 'deleted_externally' }],
    });
    expect(
      compute.created.map(({ identity, volumeClaims }) => [identity.attempt, volumeClaims]),
    ).toEqual([1, 2, 3].map((attempt) => [attempt, RESUMING.volumeClaims]));
    expect(compute.deletedClaims).toEqual(['state']);
  });

  test('that is lost in its last attempt is not resumed', async () => {
    const { run, pod } = await begun({ ...RESUMING, maxAttempts: 2 });
    endCommand(pod, 143, { reason: 'evicted' }, EVICTED);
    const second = await nextAttempt(run, 2);
    endCommand(second, 143, { reason: 'evicted' }, EVICTED);
    expect(await run.result()).toMatchObject({
      outcome: 'errored',
      cause: 'evicted',
      attempt: 2,
      message: expect.stringContaining('maxAttempts'),
    });
    expect({ pods: compute.pods.size, claims: compute.deletedClaims }).toEqual({
      pods: 0,
      claims: ['state'],
    });
  });

  test('evictions do not extend the job timeout: it is stopped by its age, in any attempt', async () => {
    const { run, pod } = await begun({ ...RESUMING, timeouts: { maxAge: '25s' } });
    endCommand(pod, 143, { reason: 'evicted' }, EVICTED);
    await nextAttempt(run, 2);
    expect(await run.result()).toMatchObject({
      outcome: 'aborted',
      cause: 'run_timeout',
      attempt: 2,
      message: expect.stringContaining('maxAge'),
    });
    expect({ pods: compute.pods.size, claims: compute.deletedClaims }).toEqual({
      pods: 0,
      claims: ['state'],
    });
  });

  test('that is out of memory is not resumed', async () => {
    const { run, pod } = await begun(RESUMING);
    compute.end(pod, 137, { oomKilled: true });
    expect(await run.result()).toMatchObject({
      outcome: 'failed',
      cause: 'oom_killed',
      attempt: 1,
    });
  });

  test('a claim is not mounted again while its node may still write to it', async () => {
    compute.nodeStates.push(...Array<'unreachable'>(100).fill('unreachable'));
    const { run, pod } = await begun(RESUMING);
    compute.vanish(pod);
    await run.reaches(
      'a wait for the node',
      ({ waitingFor }) => waitingFor?.includes('node-1') === true,
    );
    expect(compute.created).toHaveLength(1);
    compute.nodeStates.splice(0, Number.POSITIVE_INFINITY, 'fenced');
    const second = await nextAttempt(run, 2);
    expect(compute.nodeStates).toEqual([]);
    endCommand(second, 0, {});
    expect(await run.result()).toMatchObject({ outcome: 'succeeded', attempt: 2 });
  });

  test('the last lines of the log are stored unless it succeeded', async () => {
    const bad = await begun(COMMAND);
    compute.logs.set(bad.pod, 'the last words');
    endCommand(bad.pod, 1, {});
    await bad.run.result();
    expect(kept).toEqual([
      { pod: bad.pod, workflowId: bad.run.handle.workflowId, text: 'the last words' },
    ]);
    const good = await begun(COMMAND);
    compute.logs.set(good.pod, 'nobody needs this');
    endCommand(good.pod, 0, {});
    await good.run.result();
    expect(kept).toHaveLength(1);
  });

  test.each<[Partial<RunnerInput>, InputErrorCode, field: string]>([
    [{ ciServer: 'none' }, 'required', 'command'],
    [{ ...COMMAND, organization: 'acme' }, 'not_applicable', 'organization'],
    [{ onEviction: 'resume', volumeClaims: [STATE_CLAIM] }, 'conflict', 'onEviction'],
    [{ ...COMMAND, onTerm: 'checkpoint' }, 'conflict', 'onTerm'],
    [{ onTerm: 'drain' }, 'required', 'stop.drainTimeout'],
    [{ stop: { drainTimeout: '1m' } }, 'not_applicable', 'stop.drainTimeout'],
    [{ timeouts: { jobTimeout: '49h' } }, 'out_of_range', 'timeouts.jobTimeout'],
  ])('%j is rejected', async (input, code, field) => {
    const run = await world.start(input);
    await expect(run.result()).rejects.toMatchObject({
      cause: { type: 'InvalidInput', details: [{ code, field }] },
    });
    expect(compute.created).toEqual([]);
  });

  test('a request that the compute rejects fails before anything is created', async () => {
    compute.unsound.push('supervisor: needs an image');
    const run = await world.start();
    await expect(run.result()).rejects.toMatchObject({
      cause: { type: 'InvalidInput', message: 'Invalid input: supervisor: needs an image' },
    });
    expect(ci.calls).toEqual([]);
  });

  test("timeouts of the worker's configuration apply if the runner has none", async () => {
    const { run } = await begun(COMMAND);
    const { waitingUntil = '' } = await run.status();
    // An hour, and the minutes of the backstop.
    expect(Date.parse(waitingUntil) - Date.now()).toBeLessThan(3_700_000);
    await run.handle.signal('cancel');
    await run.result();
  });
});
