import { afterEach, beforeEach, expect, test } from '@jest/globals';
import {
  ORPHANED_POD_MESSAGE,
  SEARCH_ATTRIBUTES,
  SWEEP_WORKFLOW,
  sweepScheduleId,
  sweepWorkflowId,
  type SweepReport,
} from '../../core/contract/index.ts';
import { CliProcess, runCli, type CliRun } from '../support/cli.ts';
import { describeWithLab } from '../support/lab.ts';
import { AT_ONCE, sweepAtOnce } from '../support/sweepCli.ts';
import { SweepWorld } from '../support/sweepWorld.ts';
import { until } from '../support/until.ts';
import { killWorkerProcesses, startWorkerProcess } from '../support/workerProcess.ts';

await describeWithLab(
  'holdfast sweep with an API server, Temporal and the simulated GitHub',
  { temporal: true, kubernetes: true },
  (lab) => {
    let world: SweepWorld;
    let env: Record<string, string>;

    beforeEach(async () => {
      world = await SweepWorld.open(lab);
      env = {
        TEMPORAL_ADDRESS: lab.temporal?.address ?? '',
        HOLDFAST_TASK_QUEUE: world.taskQueue,
        HOLDFAST_KUBECONFIG: lab.kubernetes?.kubeconfig ?? '',
        HOLDFAST_KUBERNETES_NAMESPACE: world.harness.namespace,
        HOLDFAST_INSTALLATION: 'contract',
        HOLDFAST_CREDENTIALS: JSON.stringify({
          default: { type: 'pat', tokenEnv: 'HOLDFAST_SWEEP_TOKEN', apiUrl: world.simulator.url },
        }),
        HOLDFAST_LOG_LEVEL: 'error',
      };
    });
    afterEach(async () => {
      await killWorkerProcesses();
      await world.client.schedule
        .getHandle(sweepScheduleId(world.taskQueue))
        .delete()
        .catch(() => undefined); // most have none
      await world.close();
    });

    const cli = async (...args: string[]): Promise<CliRun> => await runCli(args, env);
    async function json<T = SweepReport>(...args: string[]): Promise<T> {
      const { status, stdout, stderr } = await cli(...args, '--json');
      if (status !== 0) throw new Error(`${args.join(' ')}: ${status}: ${stderr}${stdout}`);
      return JSON.parse(stdout) as T;
    }

    test('--standalone without a worker: marks findings and repairs them the next time; the runner then shows why it ended', async () => {
      const life = await world.terminated('tidying up');
      const { pod } = await world.provision(life);
      const ghost = await world.terminated();
      const { runnerId } = await world.register(ghost.runnerName);

      // A dry run leaves nothing, not even a mark; what is young is counted.
      const dry = await json('sweep', '--standalone', '--dry-run');
      expect(dry).toMatchObject({
        dryRun: true,
        location: world.place,
        incompleteLists: [],
        skipped: { too_young: expect.any(Number) },
        findings: [{ kind: 'orphaned_registration', name: ghost.runnerName, status: 'found' }],
      });
      expect(await world.owned.loadMarks()).toEqual([]);
      expect((await world.object('pod', pod.name))?.mark).toBeUndefined();

      const first = await sweepAtOnce(env);
      expect(first.status).toBe(0);
      expect(first.stdout).toMatch(
        new RegExp(
          `^marked +orphaned_pod +${pod.name} +${world.harness.namespace} +${ORPHANED_POD_MESSAGE}`,
          'm',
        ),
      );
      expect(await world.owned.loadMarks()).toMatchObject([
        { kind: 'orphaned_registration', key: expect.stringContaining(`#${runnerId}`) },
      ]);

      const second = await sweepAtOnce(env);
      expect(second.status).toBe(0);
      expect(second.stdout).toMatch(/^1 +orphaned_pod +0 +1 +0$/m);
      expect(world.simulator.runners()).toEqual([]);
      expect(await world.owned.loadMarks()).toEqual([]);
    });

    test('a runner whose pod was swept without a worker shows who ended it, why, and what the sweep did', async () => {
      const life = await world.terminated('tidying up');
      // A life's name at the CI server, as lists of workflows have it.
      const runnerName =
        (await life.handle.describe()).typedSearchAttributes.get(SEARCH_ATTRIBUTES.name) ?? '';
      await world.provision({ ...life, runnerName });
      const other = await world.terminated();
      for (let sweeps = 0; sweeps < 2; sweeps++)
        expect(await sweepAtOnce(env)).toMatchObject({ status: 0 });

      const { identity } = world.client.options;
      const end = {
        outcome: 'terminated',
        terminatedBy: identity,
        message: `the workflow was terminated by ${identity}: tidying up`,
        sweep: ORPHANED_POD_MESSAGE,
      };
      const details = await json<object>('runner', 'get', life.identity.workflowId);
      expect(details).toMatchObject({ status: 'TERMINATED', end });
      expect(details).not.toHaveProperty('phase');
      expect((await cli('runner', 'get', life.identity.workflowId)).stdout).toContain(
        `Swept:            ${ORPHANED_POD_MESSAGE}\n`,
      );
      const listed = await cli('runner', 'list', '--all', '--scope', world.scope.name);
      expect(listed.stdout).toMatch(
        new RegExp(
          `^${life.identity.workflowId} +- .* terminated +${end.message}; ${ORPHANED_POD_MESSAGE}$`,
          'm',
        ),
      );
      expect(listed.stdout).toMatch(
        new RegExp(
          `^${other.identity.workflowId} +- .* terminated +the workflow was terminated by ${identity}: by hand$`,
          'm',
        ),
      );
    });

    test('--standalone with an incomplete list: changes nothing, exits with 1, and reports the list', async () => {
      const { pod } = await world.provision(await world.terminated());
      await world.register((await world.terminated()).runnerName);
      world.simulator.addFault({ kind: 'status', status: 503, endpoint: 'GET *' });
      const { status, stdout, stderr } = await cli('sweep', '--standalone', '--json');
      expect(status).toBe(1);
      expect(JSON.parse(stdout)).toMatchObject({
        incompleteLists: [
          {
            list: expect.stringContaining(world.scope.name),
            reason: expect.stringContaining('503'),
          },
        ],
        findings: [],
      });
      expect(JSON.parse(stderr.trim().split('\n').at(-1) ?? '')).toMatchObject({
        error: {
          code: 'failed',
          message: expect.stringMatching(
            /^nothing was changed, because a list is incomplete: .*503/,
          ),
        },
      });
      expect(await world.object('pod', pod.name)).toMatchObject({ terminating: false });
      expect((await world.object('pod', pod.name))?.mark).toBeUndefined();
      expect(world.simulator.runners()).toHaveLength(2);
    });

    test('--standalone, interrupted: starts no further repair, reports it, and exits with 130', async () => {
      const { pod } = await world.provision(await world.terminated());
      world.simulator.addFault({ kind: 'latency', ms: 60_000, endpoint: 'GET *' });
      const sweeping = new CliProcess(['sweep', '--standalone'], {
        ...env,
        HOLDFAST_SWEEP_TOKEN: 'ghp_sweep',
      });
      await sweeping.prints(/^listing registrations$/m);
      sweeping.signal('SIGTERM');
      expect(await sweeping.exited).toEqual({ code: 130, signal: null });
      expect({
        stdout: sweeping.stdout,
        stderr: sweeping.stderr.trim().split('\n').at(-1),
      }).toEqual({
        stdout: '',
        stderr: 'error: interrupted (SIGTERM): the rest is left to the next sweep',
      });
      expect((await world.object('pod', pod.name))?.mark).toBeUndefined();
    });

    test('without Temporal: changes nothing, and exits with 4', async () => {
      const { pod } = await world.provision(await world.terminated());
      for (const more of [[], ['--standalone'], ['--standalone', '--force']]) {
        const { status, stdout, stderr } = await cli('sweep', ...more, '--address', '127.0.0.1:1');
        expect({ status, stdout }).toEqual({ status: 4, stdout: '' });
        expect(stderr).toMatch(
          /^error: cannot reach Temporal at 127\.0\.0\.1:1 \(from --address\): /,
        );
      }
      expect(await world.object('pod', pod.name)).toMatchObject({ terminating: false });
      expect((await world.object('pod', pod.name))?.mark).toBeUndefined();
    });

    test('without a worker it fails immediately, names the task queue, and starts nothing', async () => {
      const { status, stdout, stderr } = await cli('sweep');
      expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
      expect(stderr).toBe(
        `error: no worker polls the task queue ${world.taskQueue}, so the sweep would not run; start a worker with HOLDFAST_TASK_QUEUE=${world.taskQueue} ("holdfast worker"), or sweep without one ("holdfast sweep --standalone")\n`,
      );
      await expect(
        world.client.workflow.getHandle(sweepWorkflowId(world.taskQueue)).describe(),
      ).rejects.toThrow(/not found/);
    });

    test('by a worker: keeps the Schedule, sweeps on request, and the next sweep uses its marks', async () => {
      const schedule = world.client.schedule.getHandle(sweepScheduleId(world.taskQueue));
      const settings = {
        ...env,
        HOLDFAST_SWEEP_TOKEN: 'ghp_sweep',
        HOLDFAST_HTTP_ADDRESS: '127.0.0.1:0',
        HOLDFAST_LOG_LEVEL: 'info',
        HOLDFAST_SHUTDOWN_GRACE_TIME: '1s',
        HOLDFAST_SHUTDOWN_FORCE_TIME: '3s',
      };
      const worker = startWorkerProcess({ ...settings, HOLDFAST_SWEEP_INTERVAL: '2h' });
      await worker.started();
      expect((await schedule.describe()).spec.intervals).toMatchObject([{ every: 7_200_000 }]);

      const ghost = await world.terminated();
      await world.register(ghost.runnerName);
      // Longer than a heartbeat and a second command take, shorter than a request may take.
      world.simulator.addFault({ kind: 'latency', ms: 20_000, endpoint: 'GET *', count: 1 });
      const sweeping = cli('sweep');
      const byHand = world.client.workflow.getHandle(sweepWorkflowId(world.taskQueue));
      await until(
        'it to be under way',
        async () => (await byHand.describe()).status.name === 'RUNNING',
      );
      expect(await cli('sweep')).toEqual({
        status: 5,
        stdout: '',
        stderr: `error: another sweep is running (${byHand.workflowId}); run this again when it has ended\n`,
      });
      const swept = await sweeping;
      expect(swept.stderr).toContain('\nlisting registrations\n');
      expect({ status: swept.status, stderr: swept.stderr.split('\n')[0] }).toEqual({
        status: 0,
        stderr: `sweep started: ${sweepWorkflowId(world.taskQueue)}`,
      });
      expect(swept.stdout).toMatch(
        new RegExp(
          `^marked +orphaned_registration +${ghost.runnerName} +organization ${world.scope.name} +${ghost.runnerName} is registered`,
          'm',
        ),
      );
      // Found by the list of sweeps: the second one knows what the first has marked.
      await until(
        'the second to know the marks of the first',
        async () => (await json('sweep')).findings[0]?.status === 'waits',
      );

      const life = await world.terminated('tidying up');
      const { pod } = await world.provision(life);
      const sweep = async (): Promise<SweepReport> =>
        (await world.client.workflow.execute(SWEEP_WORKFLOW, {
          workflowId: `sweep-${life.identity.workflowId}`,
          taskQueue: world.taskQueue,
          args: [AT_ONCE],
        })) as SweepReport;
      const first = await sweep();
      expect(first.findings.map(({ status, name }) => `${status} ${name}`).toSorted()).toEqual(
        [`repaired ${ghost.runnerName}`, `marked ${pod.name}`].toSorted(),
      );
      expect((await sweep()).counts).toMatchObject({ orphaned_pod: { repaired: 1 } });
      await until('its end to be told', async () =>
        (await cli('runner', 'get', life.identity.workflowId)).stdout.includes(
          `Swept:            ${ORPHANED_POD_MESSAGE}`,
        ),
      );

      worker.kill('SIGTERM');
      expect(await worker.ended).toBe(143);
      await startWorkerProcess({ ...settings, HOLDFAST_SWEEP_INTERVAL: 'off' }).started();
      await expect(schedule.describe()).rejects.toThrow(/not found/i);
    });
  },
);
