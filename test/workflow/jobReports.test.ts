/** What is shown of a job's runs beside their commits, on a real Temporal server and the simulated GitHub. */
import { createHash, generateKeyPairSync, randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createCiServers, parseCredentials } from '../../activities/ciServers/index.ts';
import {
  JOB_GROUP_WORKFLOW,
  groupedJobId,
  jobGroupStatusQuery,
  jobVersionSignal,
  type JobGroupStatus,
  type JobInput,
  type JobVersion,
} from '../../core/contract/index.ts';
import { failure } from '../../activities/shared/failures.ts';
import { startSimulator, type Simulator } from '../../tools/simulator/simulator.ts';
import { FakeCompute } from '../support/fakeCompute.ts';
import { holdfastWorld, type HoldfastWorld } from '../support/holdfastWorld.ts';
import { JobRun, commandEnds, playsByItself, step } from '../support/jobRun.ts';
import { describeWithLab } from '../support/lab.ts';
import { until } from '../support/until.ts';

const keys = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
});
process.env['HOLDFAST_REPORTS_KEY'] = keys.privateKey;

/** The id of the commit that a test calls so. */
const sha = (name: string): string => createHash('sha1').update(name).digest('hex');

await describeWithLab('reports of runs', { temporal: true }, (lab) => {
  let simulator: Simulator;
  let ciServers: ReturnType<typeof createCiServers>;
  let compute: FakeCompute;
  let world: HoldfastWorld;
  let group: string;

  beforeEach(async () => {
    simulator = await startSimulator({
      apps: [{ id: 1, publicKey: keys.publicKey, installations: [{ id: 2, account: 'acme' }] }],
    });
    const credential = {
      type: 'app',
      appId: 1,
      installationId: 2,
      privateKeyEnv: 'HOLDFAST_REPORTS_KEY',
      apiUrl: simulator.url,
      scopes: ['acme'],
    };
    ciServers = createCiServers(parseCredentials({ default: credential }));
    compute = new FakeCompute();
    world = await holdfastWorld(lab.temporal?.address ?? '', {
      compute,
      ciServers,
      temporalUi: 'https://temporal.example.com',
    });
    group = `job-group:web:acme/web:main:pr-${randomUUID().slice(0, 8)}`;
  });
  afterEach(async () => {
    await world.close();
    await ciServers.close();
    await simulator.stop();
  });

  const come = async (
    commit: string,
    job: Partial<JobInput> = {},
    more: Partial<JobVersion> = {},
  ): Promise<unknown> => {
    const version: JobVersion = {
      commit: sha(commit),
      at: '2026-11-22T10:00:00Z',
      job: { name: 'web', repository: 'acme/web', test: [step('unit')], ...job },
      ...more,
    };
    return await world.client.workflow.signalWithStart(JOB_GROUP_WORKFLOW, {
      workflowId: group,
      taskQueue: world.taskQueue,
      args: [],
      signal: jobVersionSignal,
      signalArgs: [version],
    });
  };
  const run = (generation: number): JobRun =>
    JobRun.of({ world, compute }, groupedJobId(group, generation));
  const status = async (): Promise<JobGroupStatus> =>
    await world.client.workflow.getHandle(group).query(jobGroupStatusQuery);
  async function reaches(
    what: string,
    like: (status: JobGroupStatus) => boolean,
  ): Promise<JobGroupStatus> {
    let last: JobGroupStatus | undefined;
    await until(
      `the group to reach: ${what}`,
      async () => like((last = await status())),
      () => JSON.stringify(last),
    );
    return last as JobGroupStatus;
  }
  const told = async (generation: number, state: string): Promise<JobGroupStatus> =>
    await reaches(
      `${state} of ${generation} is told`,
      ({ report }) =>
        report?.last?.generation === generation &&
        report.last.state === state &&
        report.pending === undefined,
    );
  /** Each status of a commit, the oldest first. */
  const statuses = (commit: string): string[] =>
    simulator
      .statuses('acme/web', sha(commit))
      .map(({ state, description }) => `${state}: ${description}`);
  const checks = (commit: string): string[] =>
    simulator
      .checkRuns('acme/web', sha(commit))
      .map(
        ({ external_id: id, status: state, conclusion }) =>
          `${id.slice(group.length + 1)} ${conclusion ?? state}`,
      );

  test('a version is shown while it runs and when it is over, as a status and as one check run, with its page', async () => {
    await come('a');
    const pod = await run(1).runs('test-1');
    await told(1, 'running');
    expect(statuses('a')).toEqual(['pending: Running.']);
    expect(checks('a')).toEqual(['1 in_progress']);
    commandEnds(compute, pod);
    const { report } = await told(1, 'succeeded');
    expect(report).toEqual({
      last: { generation: 1, commit: sha('a'), state: 'succeeded', at: expect.any(String) },
    });
    expect(statuses('a')).toEqual(['pending: Running.', 'success: Succeeded.']);
    expect(checks('a')).toEqual(['1 success']);
    const link = `https://temporal.example.com/namespaces/default/workflows/${encodeURIComponent(`${group}:1`)}`;
    expect(simulator.statuses('acme/web', sha('a'))[1]).toMatchObject({
      context: 'holdfast/web',
      target_url: link,
    });
    expect(simulator.checkRuns('acme/web', sha('a'))).toMatchObject([
      {
        name: 'holdfast/web',
        details_url: link,
        summary: expect.stringContaining('test unit: succeeded'),
      },
    ]);
  });

  test("what has become of it is told apart: the job's own doing, infrastructure, and an end by somebody", async () => {
    await come('a');
    commandEnds(compute, await run(1).runs('test-1'), 1);
    await told(1, 'failed');
    await come('b');
    await run(2).ends(
      'test-1',
      143,
      { reason: 'cancelled' },
      { terminating: true, disruption: 'EvictionByEvictionAPI' },
    );
    await told(2, 'errored');
    await come('c');
    await run(3).runs('test-1');
    await run(3).handle.signal('cancel', 'wrong *branch*');
    await told(3, 'aborted');
    expect(statuses('a').at(-1)).toMatch(
      /^failure: Failed\. Not every step succeeded: test unit failed/,
    );
    expect(statuses('b').at(-1)).toBe(
      'error: Infrastructure: somebody should look. Not every step succeeded: test unit errored/evicted.',
    );
    expect(statuses('c').at(-1)).toMatch(
      /^error: Aborted\. The job was ended \(cancelled, stop\): wrong \*branch\*/,
    );
    expect([checks('a'), checks('b'), checks('c')]).toEqual([
      ['1 failure'],
      ['2 action_required'],
      ['3 cancelled'],
    ]);
    expect(simulator.checkRuns('acme/web', sha('c'))[0]?.summary).toMatch(
      /^```text\nAborted\. .*wrong \*branch\*/,
    );
  });

  test('a newer version: the older one is told to be superseded at once, and nothing else of it, whatever becomes of it; the newer one waits, runs, and stays', async () => {
    compute.onDelete = 'linger';
    await come('a');
    const older = await run(1).runs('test-1');
    await told(1, 'running');
    await come('b');
    await told(2, 'queued');
    expect(statuses('b')).toEqual(['pending: Queued.']);
    expect(statuses('a')).toEqual(['pending: Running.', `error: Superseded by ${sha('b')}.`]);
    commandEnds(compute, older, 143, { reason: 'superseded' });
    compute.vanish(older);
    expect(await run(1).result()).toMatchObject({ outcome: 'aborted', cause: 'superseded' });
    await run(2).ends('test-1');
    await told(2, 'succeeded');
    expect(statuses('a')).toEqual(['pending: Running.', `error: Superseded by ${sha('b')}.`]);
    expect(statuses('b')).toEqual(['pending: Queued.', 'pending: Running.', 'success: Succeeded.']);
    expect([checks('a'), checks('b')]).toEqual([['1 cancelled'], ['2 success']]);
  });

  test('one that was never begun, because another came while it waited: superseded, too; not one that was over, nor the commit that is the newest again', async () => {
    compute.onDelete = 'linger';
    await come('a');
    const older = await run(1).runs('test-1');
    await told(1, 'running');
    await come('b');
    await told(2, 'queued');
    await come('a', {}, { at: '2026-11-22T11:00:00Z' });
    await told(3, 'queued');
    expect(statuses('b')).toEqual(['pending: Queued.', `error: Superseded by ${sha('a')}.`]);
    commandEnds(compute, older, 143, { reason: 'superseded' });
    compute.vanish(older);
    await run(3).ends('test-1');
    await told(3, 'succeeded');
    await come('c', {}, { at: '2026-11-22T12:00:00Z' });
    await run(4).ends('test-1');
    await told(4, 'succeeded');
    expect(statuses('a').slice(2)).toEqual([
      'pending: Queued.',
      'pending: Running.',
      'success: Succeeded.',
    ]);
    expect(run(2).made).toEqual([]);
  });

  test('the CI server is away when a run ends and a newer version comes: what the older one came to is told all the same, after the newer one', async () => {
    await come('a');
    const pod = await run(1).runs('test-1');
    await told(1, 'running');
    simulator.addFault({ kind: 'status', status: 502 });
    commandEnds(compute, pod);
    await reaches(
      'the end of a is to be told',
      ({ report }) => report?.pending?.state === 'succeeded',
    );
    await come('b');
    await run(2).runs('test-1');
    await reaches(
      'b is to be told',
      ({ report }) => report?.pending?.generation === 2 && report.pending.state === 'running',
    );
    simulator.clearFaults();
    await told(2, 'running');
    expect(statuses('a')).toEqual(['pending: Running.', 'success: Succeeded.']);
    expect(statuses('b')).toEqual(['pending: Running.']);
  });

  test("the same commit again, while a report on the first run is still under way: that is heard first, then the newer run's", async () => {
    simulator.addFault({ kind: 'latency', ms: 4_000, endpoint: 'POST */statuses/*', count: 1 });
    await come('a');
    await run(1).runs('test-1');
    await simulator.waitFor(() => checks('a').length === 1, 'the first report under way');
    await come('a', {}, { again: true });
    await run(2).ends('test-1');
    await told(2, 'succeeded');
    expect(statuses('a')[0]).toBe('pending: Running.');
    expect(statuses('a').at(-1)).toBe('success: Succeeded.');
    expect(checks('a')).toEqual(['1 in_progress', '2 success']);
  });

  test('the CI server is away: the job runs to its end all the same, and the end is what is told when it is back', async () => {
    simulator.addFault({ kind: 'status', status: 502 });
    await come('a');
    const pod = await run(1).runs('test-1');
    expect(
      (await reaches('something is to be told', ({ report }) => report?.pending !== undefined))
        .report,
    ).toEqual({
      pending: { generation: 1, commit: sha('a'), state: 'running', at: expect.any(String) },
    });
    commandEnds(compute, pod);
    expect(await run(1).result()).toMatchObject({ outcome: 'succeeded' });
    await reaches('its end is to be told', ({ report }) => report?.pending?.state === 'succeeded');
    expect(statuses('a')).toEqual([]);
    simulator.clearFaults();
    await told(1, 'succeeded');
    expect(statuses('a')).toEqual(['success: Succeeded.']);
    expect(checks('a')).toEqual(['1 success']);
  });

  test('an answer that is lost: the check run is not made twice', async () => {
    simulator.addFault({ kind: 'drop', when: 'after', endpoint: 'POST */check-runs', count: 1 });
    playsByItself(compute, 'end');
    await come('a');
    await told(1, 'succeeded');
    expect(checks('a')).toEqual(['1 success']);
    expect(statuses('a').at(-1)).toBe('success: Succeeded.');
  });

  test('20 versions within a second: one is told of, the last', async () => {
    playsByItself(compute, 'end');
    for (let each = 0; each < 20; each++) await come(`c${each}`);
    const { generation } = await reaches(
      'the last is over and told',
      ({ commit, outcome, report }) =>
        commit === sha('c19') &&
        outcome !== undefined &&
        report?.last?.state === 'succeeded' &&
        report.last.commit === commit,
    );
    const runs = new Set(compute.created.map(({ identity }) => identity.workflowId));
    const shown = Array.from({ length: 20 }, (_, each) => `c${each}`).filter(
      (commit) => statuses(commit).length > 0,
    );
    expect(generation).toBe(20);
    // On a machine that is slow to send them the group may have found it quiet meanwhile.
    expect(shown.length).toBeLessThanOrEqual(runs.size);
    expect(shown.at(-1)).toBe('c19');
    expect(statuses('c19').at(-1)).toBe('success: Succeeded.');
  });

  test.each<[what: string, job: Partial<JobInput>, heldBack: string]>([
    [
      'a credential that the worker does not have',
      { credential: 'elsewhere' },
      'not reported: unknown credential "elsewhere": the worker\'s config names "default"; "credential" of the job names another, "report: false" asks for none',
    ],
    [
      'a repository that the credential is not for',
      { repository: 'other/web' },
      'not reported: credential "default" is not for other/web',
    ],
  ])('%s: it is said, nobody is asked, and the job runs', async (_what, job, heldBack) => {
    playsByItself(compute, 'end');
    await come('a', job);
    const { report } = await reaches(
      'a is over',
      ({ outcome, report: seen }) =>
        outcome === 'succeeded' && seen !== undefined && seen.pending === undefined,
    );
    expect(report).toEqual({ heldBack: expect.stringContaining(heldBack) });
    expect(simulator.requests()).toEqual([]);
  });

  test('who does not want it, or names no repository, is told nothing of it', async () => {
    playsByItself(compute, 'end');
    await come('a', { report: false });
    expect(await reaches('a is over', ({ outcome }) => outcome === 'succeeded')).not.toHaveProperty(
      'report',
    );
    const { repository: _none, ...without } = {
      name: 'web',
      repository: 'acme/web',
      test: [step('unit')],
    };
    await world.client.workflow
      .getHandle(group)
      .signal(jobVersionSignal, { commit: sha('b'), at: '2026-11-22T11:00:00Z', job: without });
    expect(
      await reaches(
        'b is over',
        ({ commit, outcome }) => commit === sha('b') && outcome === 'succeeded',
      ),
    ).not.toHaveProperty('report');
    expect(simulator.requests()).toEqual([]);
  });

  test('an App that may not write check runs reports by statuses alone, and the group says so', async () => {
    simulator.addFault({ kind: 'forbidden', endpoint: '* */check-runs*' });
    playsByItself(compute, 'end');
    await come('a');
    const { report } = await told(1, 'succeeded');
    expect(report?.heldBack).toMatch(
      /^no check run: 403 .*Resource not accessible by integration; check what credential "default" may do there \(checks: write\)$/,
    );
    expect(statuses('a').at(-1)).toBe('success: Succeeded.');
  });

  test('what is refused for good is given up and said; what comes next is tried anew', async () => {
    const refuse = (): never => {
      throw failure('403 from the CI server', 'CredentialsRefused', { final: true });
    };
    world.pretences.push({ activity: 'reportStatus', answer: refuse });
    await come('a');
    const pod = await run(1).runs('test-1');
    expect(
      (await reaches('it was given up', ({ report }) => report?.heldBack !== undefined)).report,
    ).toEqual({ heldBack: 'running: 403 from the CI server' });
    commandEnds(compute, pod);
    expect((await told(1, 'succeeded')).report).not.toHaveProperty('heldBack');
    expect(await run(1).result()).toMatchObject({ outcome: 'succeeded' });
    expect(statuses('a')).toEqual(['success: Succeeded.']);
  });
});
