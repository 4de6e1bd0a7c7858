import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { SEARCH_ATTRIBUTES, type RunnerStatus } from '../../core/contract/index.ts';
import { CliProcess, runCli, type CliRun } from '../support/cli.ts';
import { FakeCiServer } from '../support/fakeCiServer.ts';
import { FakeCompute } from '../support/fakeCompute.ts';
import { holdfastWorld, type HoldfastWorld } from '../support/holdfastWorld.ts';
import { SHORT_INTERVALS } from '../support/shortIntervals.ts';
import { describeWithLab } from '../support/lab.ts';
import { until } from '../support/until.ts';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';

await describeWithLab(
  'holdfast runner, on a real Temporal server with the real workflow',
  { temporal: true },
  (lab) => {
    let compute: FakeCompute;
    let ci: FakeCiServer;
    let world: HoldfastWorld;
    let env: Record<string, string>;
    let folder: string;
    let set: string;

    beforeEach(async () => {
      compute = new FakeCompute();
      ci = new FakeCiServer();
      world = await holdfastWorld(lab.temporal?.address ?? '', { compute, ciServers: ci });
      env = {
        TEMPORAL_ADDRESS: lab.temporal?.address ?? '',
        HOLDFAST_TASK_QUEUE: world.taskQueue,
        HOLDFAST_TEMPORAL_UI_URL: 'http://ui.example:8233/',
      };
      folder = await mkdtemp(join(tmpdir(), 'hf-cli-'));
      await writeFile(join(folder, 'short.json'), JSON.stringify({ intervals: SHORT_INTERVALS }));
      set = `s${randomUUID().slice(0, 8)}`; // visibility is shared with other tests
    });
    afterEach(async () => {
      await world.close();
      await rm(folder, { recursive: true });
    });

    const cli = async (...args: string[]): Promise<CliRun> => await runCli(args, env);
    async function json<T = Record<string, unknown>>(...args: string[]): Promise<T> {
      const { status, stdout, stderr } = await cli(...args, '--json');
      if (status !== 0) throw new Error(`${args.join(' ')}: ${status}: ${stderr}${stdout}`);
      return JSON.parse(stdout) as T;
    }
    const start = async (name: string, ...more: string[]): Promise<string> =>
      (
        await json<{ id: string }>(
          'runner',
          'start',
          '-f',
          join(folder, 'short.json'),
          '--org',
          'acme',
          '--set',
          set,
          '--name',
          name,
          ...more,
        )
      ).id;

    const status = async (id: string): Promise<RunnerStatus> =>
      await world.client.workflow.getHandle(id).query('status');
    async function idle(id: string): Promise<RunnerStatus> {
      await until('a pod', async () => (await status(id)).pod !== undefined);
      compute.start((await status(id)).pod ?? '');
      await until('Idle', async () => (await status(id)).phase === 'Idle');
      return await status(id);
    }
    async function makeBusy(id: string): Promise<{ pod: string; runnerName: string }> {
      const { pod = '', runnerName } = await idle(id);
      ci.connect(runnerName);
      ci.setBusy(runnerName, true);
      compute.startJob(pod);
      await until('Busy', async () => (await status(id)).phase === 'Busy');
      return { pod, runnerName };
    }
    function finish({ pod, runnerName }: { pod: string; runnerName: string }): void {
      ci.forget(runnerName);
      compute.endJob(pod);
      compute.end(pod, 0);
    }

    test('start prints ID and link; a second start with the name is rejected with status 5 and advice', async () => {
      const first = await cli(
        'runner',
        'start',
        '--repo',
        'acme/app',
        '--set',
        set,
        '--name',
        'one',
        '--labels',
        'linux,x64',
      );
      const id = `runner-${set}-one`;
      expect(first).toMatchObject({ status: 0, stderr: '' });
      expect(first.stdout.split('\n')[0]).toBe(id);
      expect(first.stdout.split('\n')[1]).toMatch(
        new RegExp(
          `^http://ui\\.example:8233/namespaces/default/workflows/${id}/[0-9a-f-]{36}/history$`,
        ),
      );
      const description = await world.client.workflow.getHandle(id).describe();
      expect(await description.staticSummary()).toBe('ephemeral runner for acme/app (linux, x64)');
      expect(description.priority?.fairnessKey).toBe('acme/app');

      const second = await cli(
        'runner',
        'start',
        '--repo',
        'acme/app',
        '--set',
        set,
        '--name',
        'one',
      );
      expect(second).toMatchObject({ status: 5, stdout: '' });
      expect(second.stderr).toMatch(
        new RegExp(`^error: ${id} already exists; .*holdfast run --attach ${id}`),
      );
      await json('runner', 'cancel', id, '--mode', 'force', '--wait');
    });

    test('list: by set, phase and outcome; running ones, unless --all', async () => {
      const [a, b] = [await start('a'), await start('b', '--static')];
      await idle(a);
      const rows = async (
        ...more: string[]
      ): Promise<{ id: string; phase: string; outcome?: string }[]> =>
        (await json<{ runners: [] }>('runner', 'list', '--set', set, ...more)).runners;
      await until(
        'visibility to tell both',
        async () =>
          (await rows())
            .map(({ id, phase }) => `${id} ${phase}`)
            .toSorted()
            .join() === `${a} Idle,${b} Provisioning`,
      );
      expect((await rows('--phase', 'idle')).map(({ id }) => id)).toEqual([a]);
      expect(await rows('-q', 'RunnerPhase = "Idle" OR RunnerPhase = "Provisioning"')).toHaveLength(
        2,
      );
      expect(await rows('--scope', 'nobody')).toEqual([]);
      const text = await cli('runner', 'list', '--set', set);
      expect(text.stdout.split('\n')[0]).toMatch(/^ID +PHASE +SCOPE +SET +AGE +OUTCOME$/);
      expect(text.stdout).toMatch(new RegExp(`^${a} +Idle +acme +${set} +\\d+s +-$`, 'm'));
      const limited = await json<{ runners: object[]; more: boolean }>(
        'runner',
        'list',
        '--set',
        set,
        '--limit',
        '1',
      );
      expect(limited).toMatchObject({ more: true, runners: [{}] });

      await json('runner', 'cancel', '--set', set, '--mode', 'force', '--yes', '--wait');
      await until('visibility to tell their end', async () => (await rows()).length === 0);
      expect((await rows('--outcome', 'aborted')).map(({ id }) => id).toSorted()).toEqual([a, b]);
      expect(await rows('--all')).toHaveLength(2);
      expect((await cli('runner', 'list', '--set', set)).stderr).toBe(
        'no running runners (--all includes ended ones)\n',
      );
    });

    test('get: status, pending activities, and result', async () => {
      const id = await start('g', '--static');
      const job = await makeBusy(id);
      expect(
        (await cli('runner', 'drain', `${set}-g`, '--reason', 'new\u001B[31m image')).stdout,
      ).toBe(`${id}: drain accepted\n`);
      await until('refusals', () => ci.count('remove') >= 2);
      const details = await json<{ phase: string; runner: RunnerStatus; ui: string }>(
        'runner',
        'get',
        `${set}-g`,
      );
      expect(details).toMatchObject({
        id,
        status: 'RUNNING',
        phase: details.runner.phase,
        runner: { runnerName: job.runnerName, pod: job.pod, cancel: { mode: 'drain' } },
      });
      expect(details.ui).toContain(id);
      type Tried = {
        pendingActivities: {
          type: string;
          attempt: number;
          lastFailure?: string;
          nextRetryAt?: string;
        }[];
      };
      const tried = async (): Promise<Tried['pendingActivities']> =>
        (await json<Tried>('runner', 'get', id)).pendingActivities;
      await until('a retry with its reason and time', async () =>
        (await tried()).some(
          (each) =>
            each.attempt >= 2 &&
            /still running a job/.test(each.lastFailure ?? '') &&
            Date.parse(each.nextRetryAt ?? '') > 0,
        ),
      );
      const { stdout } = await cli('runner', 'get', id);
      expect(stdout).toMatch(/^Cancel: +drain: new/m);
      expect(stdout).toMatch(/^ACTIVITY +STATE +ATTEMPT +NEXT RETRY +LAST FAILURE$/m);
      expect(stdout).toMatch(/still running a job/);
      // oxlint-disable-next-line no-control-regex -- that none is printed is the point
      expect(stdout).not.toMatch(/[\u0000-\u0009\u000B-\u001F]/);

      finish(job);
      await until(
        'its end',
        async () => (await json<{ status: string }>('runner', 'get', id)).status === 'COMPLETED',
      );
      const ended = await json<{ end: { outcome: string } }>('runner', 'get', id);
      expect(ended.end.outcome).toBe('succeeded');
      expect((await cli('runner', 'get', id)).stdout).toMatch(/^Outcome: +succeeded$/m);
    });

    test('--web opens the page of an object, or of a list, in the browser', async () => {
      const id = await start('shown');
      const file = join(folder, 'opened');
      await writeFile(join(folder, 'browser'), `#!/bin/sh\necho "$1" >"${file}"\n`, {
        mode: 0o755,
      });
      const opened = async (...args: string[]): Promise<{ ui: string; url: string }> => {
        await rm(file, { force: true });
        const command = new CliProcess([...args, '--web', '--json'], {
          ...env,
          BROWSER: join(folder, 'browser'),
        });
        expect(await command.exited).toEqual({ code: 0, signal: null });
        const read = (): string => (existsSync(file) ? readFileSync(file, 'utf8').trim() : '');
        await until('the browser to open', async () => await Promise.resolve(read() !== ''));
        return { ...(JSON.parse(command.stdout) as { ui: string }), url: read() };
      };
      const page = await opened('runner', 'get', `${set}-shown`);
      expect(page.url).toBe(page.ui);
      expect(page.url).toMatch(
        new RegExp(`^http://ui\\.example:8233/namespaces/default/workflows/${id}/`),
      );
      const list = await opened('runner', 'list', '--set', set);
      expect(new URL(list.url).searchParams.get('query')).toContain(set);

      expect(await cli('runner', 'get', 'runner-nobody', '--web')).toMatchObject({ status: 3 });
      expect(await cli('runner', 'get', id, 'runner-other', '--web')).toMatchObject({ status: 2 });
      expect(await cli('runner', 'get', id, '--web', '--watch')).toMatchObject({ status: 2 });
      const { HOLDFAST_TEMPORAL_UI_URL: _ui, ...unknown } = env;
      expect(await runCli(['set', 'list', '--web'], unknown)).toMatchObject({ status: 2 });
      await cli('runner', 'cancel', id);
    });

    test('get without a worker prints what Temporal knows, with a note, within seconds', async () => {
      const id = await start('w');
      await idle(id);
      await until(
        'visibility',
        async () =>
          (await world.client.workflow.getHandle(id).describe()).searchAttributes[
            'RunnerPhase'
          ]?.[0] === 'Idle',
      );
      await world.suspend();
      const started = performance.now();
      const details = await json<{ phase: string; note: string; runner?: unknown }>(
        'runner',
        'get',
        id,
      );
      expect(performance.now() - started).toBeLessThan(30_000);
      expect(details).toMatchObject({
        phase: 'Idle',
        note: expect.stringMatching(/^no worker answered/),
      });
      expect(details.runner).toBeUndefined();
      // A drain is not lost meanwhile: it becomes a signal.
      const drained = await json<{ accepted: boolean; note: string }>('runner', 'drain', id);
      expect(drained).toMatchObject({
        accepted: true,
        note: expect.stringMatching(/^no worker answered/),
      });
      await world.resume();
      expect(await world.client.workflow.getHandle(id).result()).toMatchObject({
        outcome: 'succeeded',
      });
    });

    test('get names the task queue without a worker, and the fix', async () => {
      interface Unpolled {
        unpolledQueues: { taskQueue: string; fix: string }[];
      }
      const id = await start('polled');
      await idle(id);
      expect(await json<Unpolled>('runner', 'get', id)).toMatchObject({ unpolledQueues: [] });

      const nowhere = `nowhere-${randomUUID()}`;
      const abandoned = await world.client.workflow.start('runner', {
        workflowId: `runner-${nowhere}`,
        taskQueue: nowhere,
        args: [{ organization: 'acme' }],
      });
      expect((await json<Unpolled>('runner', 'get', abandoned.workflowId)).unpolledQueues).toEqual([
        {
          taskQueue: nowhere,
          fix: `start a worker with HOLDFAST_TASK_QUEUE=${nowhere} ("holdfast worker")`,
        },
      ]);
      await abandoned.terminate();

      const without = await holdfastWorld(
        lab.temporal?.address ?? '',
        { compute, ciServers: ci },
        [],
      );
      const { handle } = await without.start();
      const lane = `${without.taskQueue}-ci-default`;
      let details: Unpolled | undefined;
      await until(
        'its lane to be named',
        async () =>
          (details = await json<Unpolled>('runner', 'get', handle.workflowId)).unpolledQueues
            .length > 0,
      );
      expect(details?.unpolledQueues).toEqual([
        {
          taskQueue: lane,
          fix: `no worker with HOLDFAST_TASK_QUEUE=${without.taskQueue} has the credential "default": add it to HOLDFAST_CREDENTIALS, and restart that worker`,
        },
      ]);
      expect((await cli('runner', 'get', handle.workflowId)).stdout).toContain(
        `Not polled:       task queue ${lane}: no worker`,
      );
      await without.close();
    });

    test('a terminated or failed runner shows who ended it and why, instead of its last phase', async () => {
      const id = await start('t');
      await makeBusy(id);
      await world.client.workflow.getHandle(id).terminate('tidying up');
      const { identity } = world.client.options;
      const message = `the workflow was terminated by ${identity}: tidying up`;
      const details = await json('runner', 'get', id);
      expect(details).toMatchObject({
        status: 'TERMINATED',
        end: { outcome: 'terminated', terminatedBy: identity, message },
        note: expect.stringContaining('"holdfast sweep"'),
      });
      expect(details).not.toHaveProperty('phase');
      const text = (await cli('runner', 'get', id)).stdout;
      expect(text).toContain(`Message:          ${message}\n`);
      expect(text).not.toMatch(/^Phase|Busy/m);

      const invalid = await world.client.workflow.start('runner', {
        workflowId: `runner-${set}-invalid`,
        taskQueue: world.taskQueue,
        args: [{ labels: [] }],
        typedSearchAttributes: [{ key: SEARCH_ATTRIBUTES.set, value: set }],
      });
      await expect(invalid.result()).rejects.toThrow('Workflow execution failed');
      const ended = async (): Promise<{ id: string; phase?: string; end?: object }[]> =>
        (await json<{ runners: [] }>('runner', 'list', '--set', set, '--all')).runners;
      await until(
        'visibility to tell both ends',
        async () => (await ended()).filter(({ end }) => end !== undefined).length === 2,
      );
      expect((await ended()).toSorted((a, b) => (a.id < b.id ? -1 : 1))).toEqual([
        expect.objectContaining({
          id: invalid.workflowId,
          end: {
            outcome: 'failed',
            message: expect.stringMatching(/^the workflow failed: Invalid input: labels /),
          },
        }),
        expect.objectContaining({
          id,
          end: { outcome: 'terminated', terminatedBy: identity, message },
        }),
      ]);
      const listed = (await cli('runner', 'list', '--set', set, '--all')).stdout;
      expect(listed).toMatch(new RegExp(`^${id} +- .* terminated +${message}$`, 'm'));
      expect(listed).not.toContain('Busy');
    });

    test('cancel: modes, --wait and its status; ended and unknown runners are status 3', async () => {
      const id = await start('c');
      await makeBusy(id);
      expect(await json('runner', 'cancel', id, '--wait', '--reason', 'enough')).toMatchObject({
        id,
        mode: 'stop',
        accepted: true,
        end: { outcome: 'aborted', cause: 'cancelled' },
      });
      expect(compute.deletions.map(({ underJob }) => underJob)).toContain(true); // stop was asked for
      for (const args of [
        ['cancel', id],
        ['drain', id],
      ]) {
        const again = await cli('runner', ...args);
        expect({ status: again.status, stderr: again.stderr }).toEqual({
          status: 3,
          stderr: `error: ${id} has already ended; see it with "holdfast runner get ${id}"\n`,
        });
      }
      for (const args of [
        ['get', 'nobody'],
        ['cancel', 'nobody'],
        ['drain', 'nobody'],
      ]) {
        const unknown = await cli('runner', ...args);
        expect({ status: unknown.status, stderr: unknown.stderr }).toEqual({
          status: 3,
          stderr:
            'error: no runner nobody in namespace default; see "holdfast runner list --all"\n',
        });
      }
    });

    test('drain lets the job of a busy runner complete; --wait prints its end', async () => {
      const id = await start('d', '--static');
      const job = await makeBusy(id);
      const drained = cli('runner', 'drain', id, '--wait');
      await until('refusals', () => ci.count('remove') >= 2);
      expect(compute.deletions).toEqual([]);
      finish(job);
      expect(await drained).toMatchObject({
        status: 0,
        stdout: expect.stringMatching(new RegExp(`^${id}: succeeded: `)),
      });
      expect(compute.deletions.filter(({ underJob }) => underJob)).toEqual([]);
    });

    test('several: nothing happens without --yes; with it, each is reported', async () => {
      const ids = [await start('m1'), await start('m2'), await start('m3')];
      await until(
        'visibility',
        async () =>
          (await json<{ runners: object[] }>('runner', 'list', '--set', set)).runners.length === 3,
      );
      const asked = await cli('runner', 'cancel', '--set', set, '--mode', 'force');
      expect(asked).toMatchObject({
        status: 2,
        stdout: '',
        stderr: expect.stringMatching(
          /^error: would cancel \(force\) 3 runners: .*; add --yes to do it\n$/,
        ),
      });
      for (const id of ids) expect((await status(id)).cancel).toBeUndefined();
      const done = await json<{ runners: { id: string; end: { outcome: string } }[] }>(
        'runner',
        'cancel',
        '-q',
        `RunnerSet = "${set}"`,
        '--mode',
        'force',
        '--yes',
        '--wait',
      );
      expect(done.runners.map(({ id }) => id).toSorted()).toEqual(ids);
      expect(new Set(done.runners.map(({ end }) => end.outcome))).toEqual(new Set(['aborted']));
    });

    test('a request that Temporal rejects is a usage error in one line', async () => {
      const query = await cli('runner', 'list', '-q', 'NoSuchAttribute = "x"');
      expect(query).toMatchObject({
        status: 2,
        stderr: expect.stringMatching(
          /^error: Temporal rejected the request: .*NoSuchAttribute.*\n$/,
        ),
      });
      for (const args of [['list'], ['get', 'x'], ['start', '--org', 'acme'], ['cancel', 'x']]) {
        const namespace = await cli('runner', ...args, '--namespace', 'no-such-namespace');
        expect(namespace).toMatchObject({
          status: 2,
          stdout: '',
          stderr: expect.stringMatching(
            /^error: namespace "no-such-namespace" does not exist .*set --namespace or TEMPORAL_NAMESPACE.*\n$/,
          ),
        });
      }
    });

    test('doctor: findings as one document; status 0 without problems, 1 with problems, 2 with invalid settings', async () => {
      const token = join(folder, 'token');
      await writeFile(token, 'ghp_hush\n', { mode: 0o600 });
      const settings = {
        HOLDFAST_COMPUTE: 'process',
        HOLDFAST_STATE_DIR: folder,
        HOLDFAST_GITHUB_TOKEN_FILE: token,
        HOLDFAST_RUNNER_COMMAND: '["true"]',
      };
      const doctor = async (
        args: string[],
        more: Record<string, string> = settings,
      ): Promise<{
        status: number;
        stdout: string;
        report: { ok: boolean; findings: { level: string; message: string; fix?: string }[] };
      }> => {
        const { status: code, stdout } = await runCli(['doctor', '--json', ...args], {
          ...env,
          ...more,
        });
        return { status: code, stdout, report: JSON.parse(stdout) };
      };
      const well = await doctor([]);
      expect(well.report.findings.filter(({ level }) => level === 'error')).toEqual([]);
      expect(well).toMatchObject({ status: 0, report: { ok: true } });
      expect(well.report.findings.map(({ message }) => message)).toContainEqual(
        expect.stringMatching(/^task queue ".*" for runners in process\/[0-9a-f]{16}\/holdfast$/),
      );
      const away = await doctor(['--address', '127.0.0.1:1']);
      expect(away).toMatchObject({
        status: 1,
        report: {
          ok: false,
          findings: expect.arrayContaining([
            expect.objectContaining({
              level: 'error',
              message: expect.stringContaining('127.0.0.1:1'),
            }),
          ]),
        },
      });
      const wrong = await doctor([], { ...settings, HOLDFAST_COMPUTE: 'cloud' });
      expect(wrong).toMatchObject({
        status: 2,
        report: {
          ok: false,
          findings: [{ level: 'error', message: expect.stringMatching(/^HOLDFAST_COMPUTE: /) }],
        },
      });
      for (const { stdout } of [well, away, wrong]) expect(stdout).not.toContain('ghp_hush');
    });
  },
);
