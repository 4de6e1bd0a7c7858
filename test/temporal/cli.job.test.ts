import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { JobInput } from '../../core/contract/index.ts';
import { CliProcess, runCli, type CliRun } from '../support/cli.ts';
import { JobRun, playsByItself, step } from '../support/jobRun.ts';
import { describeWithLab } from '../support/lab.ts';
import { memoryWorld, type MemoryWorld } from '../support/memoryWorld.ts';
import { until } from '../support/until.ts';

await describeWithLab(
  'holdfast job, on a real Temporal server with the real workflows',
  { temporal: true },
  (lab) => {
    let all: MemoryWorld;
    let env: Record<string, string>;
    let folder: string;
    let name: string;

    beforeEach(async () => {
      all = await memoryWorld(lab);
      env = {
        TEMPORAL_ADDRESS: lab.temporal?.address ?? '',
        HOLDFAST_TASK_QUEUE: all.world.taskQueue,
      };
      folder = await mkdtemp(join(tmpdir(), 'hf-cli-job-'));
      name = `j${randomUUID().slice(0, 8)}`; // visibility is shared with other tests
    });
    afterEach(async () => {
      await all.world.close();
      await rm(folder, { recursive: true });
    });

    const cli = async (...args: string[]): Promise<CliRun> => await runCli(['job', ...args], env);
    async function json<T = Record<string, unknown>>(...args: string[]): Promise<T> {
      const { status, stdout, stderr } = await cli(...args, '--json');
      if (status !== 0) throw new Error(`${args.join(' ')}: ${status}: ${stderr}${stdout}`);
      return JSON.parse(stdout) as T;
    }
    async function written(more: Partial<JobInput> = {}): Promise<string> {
      const path = join(folder, 'job.yaml');
      await writeFile(
        path,
        JSON.stringify({ name, test: [step('unit')], post: [step('clean')], ...more }),
      );
      return path;
    }

    test('run, list, get, cancel and logs: from the file to the last line', async () => {
      const { id } = await json<{ id: string }>(
        'run',
        '-f',
        await written(),
        '--id',
        `job-${name}`,
      );
      expect(id).toBe(`job-${name}`);
      const again = await cli('run', '-f', await written(), '--id', id);
      expect(again).toMatchObject({
        status: 5,
        stderr: expect.stringContaining(`job ${id} is already running`),
      });

      const run = JobRun.of(all, id);
      const pod = await run.runs('test-1');
      await until(
        'the list to have it',
        async () => (await json<{ jobs: object[] }>('list', '--name', name)).jobs.length === 1,
      );
      expect((await cli('list', '--name', name)).stdout).toMatch(
        new RegExp(`^ID +JOB +STAGE .*\\n${id} +${name} +test `),
      );
      expect(await json('get', name)).toMatchObject({
        id,
        status: 'RUNNING',
        job: {
          stage: 'test',
          steps: [{ name: 'unit', state: 'running', pod }, { state: 'waiting' }],
        },
        unpolledQueues: [],
      });
      expect((await cli('get', id)).stdout).toContain('Waits for:        test unit to end, until ');

      expect(await cli('cancel', id, '--reason', 'wrong branch')).toMatchObject({
        status: 0,
        stdout: `${id}: cancel (stop) sent\n`,
      });
      await run.ends('post-1');
      await run.result();
      const log = [
        'Running step unit.',
        'Received signal. signal=interrupt',
        'error: Process interrupted with signal interrupt, cancelling execution...',
        `cleanup: Deleting pod ${pod}`,
        'Running step clean.',
        'Process gracefully exited before 30m0s grace period',
      ];
      expect(await cli('logs', id)).toEqual({
        status: 0,
        stderr: '',
        stdout: log.map((line) => `${line}\n`).join(''),
      });
      expect((await cli('logs', id, '--timestamps')).stdout).toMatch(
        /^\d{4}-\S+Z Running step unit\.\n/,
      );
      expect(await json('get', id)).toMatchObject({
        status: 'COMPLETED',
        outcome: 'aborted',
        cause: 'cancelled',
        end: { outcome: 'aborted', message: expect.stringContaining('wrong branch') },
        job: { steps: [{ cause: 'cancelled' }, { outcome: 'succeeded' }] },
      });
      expect(await cli('cancel', id)).toMatchObject({
        status: 3,
        stderr: expect.stringContaining(`job ${id} has already ended`),
      });
    });

    test('run --commit: a newer version of a change set replaces the older one', async () => {
      const file = await written({ repository: 'Acme/Web' });
      const version = ['run', '-f', file, '--base', 'main', '--pull-request', '7', '--commit'];
      const group = `job-group:${name}:acme/web:main:pr-7`;
      // Whether it runs by now depends on the machine.
      expect((await json<{ id: string; status: object }>(...version, 'aaa1')).status).toMatchObject(
        { runNumber: 1, commit: 'aaa1' },
      );
      const first = JobRun.of(all, `${group}:1`);
      await first.runs('test-1');
      expect((await cli(...version, 'aaa1')).stdout).toBe(
        `${group}: version 1 (aaa1) runs as ${group}:1\n`,
      );
      expect((await cli(...version, 'bbb2')).stdout).toBe(
        `${group}: version 2 (bbb2) waits for ${group}:1 to end\n`,
      );
      await first.ends('post-1');
      const second = JobRun.of(all, `${group}:2`);
      await second.ends('test-1');
      await second.ends('post-1');
      expect(await second.result()).toMatchObject({ outcome: 'succeeded' });
      await until(
        'the list to have both',
        async () =>
          (await json<{ jobs: object[] }>('list', '--all', '--scope', 'Acme/Web', '--name', name))
            .jobs.length === 2,
      );
    });

    test.each([
      ['succeeded', 0, 0],
      ['failed', 3, 1],
    ] as const)(
      'run --attach stays until it has %s, and shows its log',
      async (outcome, code, status) => {
        playsByItself(all.compute, 'run');
        const attached = new CliProcess(
          ['job', 'run', '-f', await written(), '--id', `job-${name}`, '--attach'],
          env,
        );
        await attached.prints(/Running step unit\./);
        const run = JobRun.of(all, `job-${name}`);
        await run.ends('test-1', code);
        await run.ends('post-1');
        expect(await attached.exited).toMatchObject({ code: status });
        expect(attached.stdout).toMatch(
          new RegExp(`Running step clean\\.\\n[^]*job-${name} ${outcome}: `),
        );
      },
    );

    test('run --attach: Ctrl-C drains, a second one stops the step, and post runs', async () => {
      const attached = new CliProcess(
        [
          'job',
          'run',
          '-f',
          await written({ test: [step('unit'), step('e2e')] }),
          '--id',
          `job-${name}`,
          '--attach',
        ],
        env,
        { onTerminal: true },
      );
      const run = JobRun.of(all, `job-${name}`);
      await until('the job to be there', async () => (await run.status()).steps.length > 0);
      await run.runs('test-1');
      attached.pressCtrlC();
      await attached.prints(/draining: the running stage may finish, then post runs/);
      await run.reaches('the drain', ({ cancel }) => cancel?.mode === 'drain');
      attached.pressCtrlC();
      await run.reaches('the stop', ({ cancel }) => cancel?.mode === 'stop');
      await run.ends('post-1');
      expect(await attached.exited).toMatchObject({ code: 1 });
      expect(attached.stdout).toContain(`job-${name} aborted/cancelled`);
      expect(run.made).toEqual(['test-1', 'post-1']);
    });

    test.each([
      ['SIGINT', []],
      ['SIGTERM', ['--on-sigterm', 'stop']],
    ] as const)(
      'run --attach without a terminal: %s %j stops the step, and post has run',
      async (signal, flags) => {
        const attached = new CliProcess(
          ['job', 'run', '-f', await written(), '--id', `job-${name}`, '--attach', ...flags],
          env,
        );
        const run = JobRun.of(all, `job-${name}`);
        await attached.prints(/Running step unit\./);
        await run.runs('test-1');
        attached.signal(signal);
        await run.reaches('the stop', ({ cancel }) => cancel?.mode === 'stop');
        await run.ends('post-1');
        expect(await attached.exited).toMatchObject({ code: 1 });
        expect(attached.stdout).toContain(`job-${name} aborted/cancelled`);
      },
    );

    test('run --attach without a terminal: SIGINT, then SIGTERM, detaches and keeps the cancel request', async () => {
      const attached = new CliProcess(
        ['job', 'run', '-f', await written(), '--id', `job-${name}`, '--attach'],
        env,
      );
      const run = JobRun.of(all, `job-${name}`);
      await attached.prints(/Running step unit\./);
      await run.runs('test-1');
      all.compute.onDelete = 'linger';
      attached.signal('SIGINT');
      await attached.prints(/stopping: /);
      attached.signal('SIGTERM');
      expect(await attached.exited).toEqual({ code: 143, signal: null });
      expect(attached.stdout).toContain(`job-${name} keeps its cancel request`);
      expect((await run.status()).cancel).toMatchObject({ mode: 'stop' });
      await run.handle.signal('cancel', { mode: 'force' });
    });

    test('cancel --change-set: the runs of groups, a waiting one, and jobs by their source; no others', async () => {
      const number = 1 + Math.floor(Math.random() * 1e9);
      const repository = 'Acme/Web';
      const file = await written({ repository });
      const version = ['run', '-f', file, '--base', 'main', '--pull-request', `${number}`];
      const group = `job-group:${name}:acme/web:main:pr-${number}`;
      await json(...version, '--commit', 'aaa1');
      const first = JobRun.of(all, `${group}:1`);
      await first.runs('test-1');
      await json(...version, '--commit', 'bbb2');
      const source = { event: 'pull_request', pullRequest: number } as const;
      const started = async (id: string, more: Partial<JobInput>): Promise<JobRun> => {
        await json(
          'run',
          '-f',
          await written({ repository, ...more }),
          '--id',
          `job-${name}-${id}`,
        );
        return JobRun.of(all, `job-${name}-${id}`);
      };
      const alone = await started('alone', { source });
      const others = [
        await started('other', { source: { ...source, pullRequest: number + 1 } }),
        await started('elsewhere', { source, repository: 'acme/app' }),
      ];
      const selected = [first.id, alone.id].toSorted();
      const cancelled = new Set<string>();
      const groupsFound = new Set<string>();
      await until('the lists to have all', async () => {
        const { jobs, groups } = await json<{ jobs: { id: string }[]; groups: string[] }>(
          'cancel',
          '--change-set',
          `acme/web#${number}`,
          '--reason',
          'closed',
        );
        for (const { id } of jobs) cancelled.add(id);
        for (const id of groups) groupsFound.add(id);
        return cancelled.size === selected.length && groupsFound.size === 1;
      });
      expect([...cancelled].toSorted()).toEqual(selected);
      expect([...groupsFound]).toEqual([group]);
      for (const [run, cause] of [
        [first, 'superseded'],
        [alone, 'cancelled'],
      ] as const) {
        await run.ends('post-1');
        expect(await run.result()).toMatchObject({ outcome: 'aborted', cause });
      }
      for (const run of others) expect((await run.status()).cancel).toBeUndefined();
      expect(await all.world.client.workflow.getHandle(group).query('status')).toMatchObject({
        commit: 'bbb2',
        queued: false,
      });
      await Promise.all(others.map((run) => run.handle.signal('cancel', { mode: 'force' })));
    });

    test("logs --follow continues until the end; a terminated job has its workflow's information", async () => {
      await json('run', '-f', await written(), '--id', `job-${name}`);
      const following = new CliProcess(['job', 'logs', name, '--follow'], env);
      const run = JobRun.of(all, `job-${name}`);
      await run.runs('test-1');
      await following.prints(/Running step unit\./);
      await run.handle.terminate('by hand');
      expect(await following.exited).toMatchObject({ code: 0 });
      expect(await cli('logs', name)).toMatchObject({ status: 0, stdout: 'Running step unit.\n' });
      expect((await cli('get', name)).stdout).toMatch(/Outcome: +terminated\n/);
    });

    test.each([['get'], ['cancel'], ['logs']])('%s: an invalid job', async (command) => {
      await all.world.start({}, `job-${name}-not`);
      expect(await cli(command, `job-${name}-not`)).toMatchObject({
        status: 3,
        stderr: expect.stringContaining('is not a job but a workflow of type runner'),
      });
      expect(await cli(command, `${name}-nobody`)).toMatchObject({
        status: 3,
        stderr: expect.stringContaining(`no job ${name}-nobody`),
      });
    });
  },
);
