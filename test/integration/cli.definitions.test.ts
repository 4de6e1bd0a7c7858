import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { groupedJobId, type JobDefinitionInput } from '../../core/contract/index.ts';
import { runCli, type CliRun } from '../support/cli.ts';
import { DefinitionRun } from '../support/definitionRun.ts';
import { JobRun, playsByItself, step } from '../support/jobRun.ts';
import { describeWithLab } from '../support/lab.ts';
import { memoryWorld, type MemoryWorld } from '../support/memoryWorld.ts';
import { until } from '../support/until.ts';

await describeWithLab(
  'holdfast job apply and its siblings, on a real Temporal server with the real workflows',
  { temporal: true },
  (lab) => {
    let all: MemoryWorld;
    let job: DefinitionRun;
    let env: Record<string, string>;
    let folder: string;

    beforeEach(async () => {
      all = await memoryWorld(lab);
      job = new DefinitionRun(all);
      env = {
        TEMPORAL_ADDRESS: lab.temporal?.address ?? '',
        HOLDFAST_TASK_QUEUE: all.world.taskQueue,
      };
      folder = await mkdtemp(join(tmpdir(), 'hf-cli-definitions-'));
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
    async function file(more: Partial<JobDefinitionInput> = {}): Promise<string> {
      const path = join(folder, 'jobs.yaml');
      await writeFile(
        path,
        JSON.stringify([job.input({ on: { push: { branches: ['main'] } }, ...more })]),
      );
      return path;
    }
    const ours = (): string => `Acme/Web:${job.name}`;

    test('apply, apply again, list, look at, pause, resume and delete', async () => {
      playsByItself(all.compute, 'run');
      expect(await cli('apply', '-f', await file(), '--dry-run')).toMatchObject({
        status: 0,
        stdout: `+ ${ours()}: new\n`,
      });
      expect(await cli('apply', '-f', await file())).toMatchObject({
        status: 0,
        stdout: `+ ${ours()}: new\n${ours()}: applied\n`,
      });
      expect(await cli('apply', '-f', await file())).toMatchObject({
        status: 0,
        stdout: `= ${ours()}: unchanged\n${ours()}: unchanged\n`,
      });
      const changed = await cli(
        'apply',
        '-f',
        await file({ maxConcurrency: 2, test: [step('unit', { env: { A: 'hidden' } })] }),
      );
      expect(changed).toMatchObject({
        status: 0,
        stdout: `~ ${ours()}: changed\n    + maxConcurrency: 2\n    + test.0.env.A: (not shown)\n${ours()}: applied\n`,
      });
      expect(changed.stderr).toContain('env: what is written for A lies in Temporal in clear');

      await job.push('main', 'aaa1');
      const run = JobRun.of(all, groupedJobId(job.group('main'), 1));
      await run.runs('test-1');
      await job.push('other', 'bbb2');
      await job.reaches('one to be left out', ({ leftOut }) => leftOut.length === 1);
      await until('the list to have it', async () =>
        (await json<{ definitions: { name: string }[] }>('definitions')).definitions.some(
          ({ name }) => name === job.name,
        ),
      );
      expect((await cli('definitions')).stdout).toMatch(
        new RegExp(
          `^NAME +REPOSITORY +RUNNING +WAITING +NEXT +NOTE\\n(.*\\n)*${job.name} +Acme/Web +1 +0 +- +-`,
        ),
      );
      for (const name of [job.name, ours(), job.id])
        expect(await json('definition', name)).toMatchObject({
          id: job.id,
          status: 'RUNNING',
          definition: { generation: 2, running: [{ version: 'aaa1' }] },
          declaration: { maxConcurrency: 2 },
        });
      expect((await cli('definition', job.name)).stdout).toMatch(
        /At once: +1 of 2\n[^]*running +aaa1 +\S+ +- +job-group:[^]*branches: other does not match/,
      );

      expect(await cli('pause', job.name, '--reason', 'the cloud is down')).toMatchObject({
        status: 0,
        stdout: `${job.id}: paused: nothing is begun; what runs goes on, and what comes waits, but for times of its schedule\n`,
      });
      expect(await json('definition', job.name)).toMatchObject({
        definition: { paused: 'the cloud is down' },
      });
      expect(await cli('resume', job.name)).toMatchObject({
        status: 0,
        stdout: `${job.id}: resumed\n`,
      });
      expect(await cli('delete', job.name)).toMatchObject({
        status: 0,
        stdout: `${job.id}: 1 under way; it ends when they have\n`,
      });
      const deleting = cli('delete', job.name, '--wait');
      await run.ends('test-1');
      expect(await deleting).toMatchObject({ status: 0, stdout: `${job.id}: deleted\n` });
      expect(await cli('pause', ours())).toMatchObject({
        status: 3,
        stderr: expect.stringContaining('has ended already'),
      });
      expect((await cli('definition', ours())).stdout).toMatch(
        /Status: +completed\n[^]*succeeded +aaa1/,
      );
    });

    test('what the worker alone can refuse is told, and the one before goes on', async () => {
      await cli('apply', '-f', await file());
      const refused = await cli(
        'apply',
        '-f',
        await file({ credential: 'nobody', on: { pull_request: { paths: ['src/**'] } } }),
      );
      expect(refused).toMatchObject({
        status: 1,
        stdout: expect.stringContaining('not applied: job'),
      });
      expect(refused.stdout).toContain('unknown credential "nobody"');
      expect(await json('definition', job.name)).toMatchObject({
        definition: { generation: 1, refused: { what: 'declaration' } },
        declaration: { on: { push: { branches: ['main'] } } },
      });
    });

    test('without a worker what is applied is kept for one', async () => {
      await all.world.suspend();
      const { status, stdout } = await cli('apply', '-f', await file());
      expect([status, stdout]).toEqual([
        0,
        `+ ${ours()}: new\n${ours()}: sent; no worker has looked at it yet\n`,
      ]);
      await all.world.resume();
      expect(await job.reaches('it to hold', ({ generation }) => generation === 1)).toMatchObject({
        name: job.name,
      });
    });

    test('names that are none', async () => {
      expect(await cli('definition', 'nobody')).toMatchObject({
        status: 3,
        stderr: expect.stringContaining('no declared job nobody'),
      });
      expect(await cli('delete', 'acme/web:nobody')).toMatchObject({ status: 3 });
    });
  },
);
