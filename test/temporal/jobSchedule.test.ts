/** The commands of docs/jobs.md by which a Schedule of Temporal's starts jobs, as they stand there. */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { ScheduleNotFoundError } from '@temporalio/client';
import { expect, test } from '@jest/globals';
import { resolveBinary } from '../../tools/lab/resolve.ts';
import { JobRun, playsByItself } from '../support/jobRun.ts';
import { describeWithLab } from '../support/lab.ts';
import { pages } from '../support/markdown.ts';
import { memoryWorld } from '../support/memoryWorld.ts';
import { until } from '../support/until.ts';

await describeWithLab('a job that a Schedule starts', { temporal: true }, (lab) => {
  test('works with each command of the page', async () => {
    const all = await memoryWorld(lab);
    const id = `nightly-${randomUUID().slice(0, 8)}`;
    const temporal = await resolveBinary('temporal', { progress: () => undefined });
    const [block = ''] = pages()
      .filter(({ path }) => path === 'docs/jobs.md')
      .flatMap(({ blocks }) => blocks.map(({ text }) => text))
      .filter((text) => text.startsWith('temporal schedule create'));
    const commands = block
      .replaceAll('\\\n', ' ')
      .trim()
      .split('\n')
      .map((line) =>
        line
          .replace('--schedule-id nightly', `--schedule-id ${id}`)
          .replace('--workflow-id job-nightly', `--workflow-id job-${id}`)
          .replace('--task-queue holdfast', `--task-queue ${all.world.taskQueue}`)
          .replace(/^temporal /, '"$0" '),
      );
    const run = async (verb: string): Promise<void> => {
      const command = commands.find((line) => line.includes(` schedule ${verb} `)) ?? 'false';
      await promisify(execFile)('sh', ['-ec', command, temporal], {
        env: {
          ...process.env,
          TEMPORAL_ADDRESS: lab.temporal?.address,
          TEMPORAL_NAMESPACE: lab.temporal?.namespace,
        },
      });
    };
    const schedule = all.world.client.schedule.getHandle(id);
    try {
      playsByItself(all.compute, 'end');
      await run('create');
      expect(await schedule.describe()).toMatchObject({
        spec: { timezone: 'Europe/Berlin', calendars: [{ hour: [{ start: 3 }] }] },
        policies: { overlap: 'SKIP', catchupWindow: 3_600_000 },
        state: { paused: false },
      });
      await run('trigger');
      let started: string | undefined;
      await until('the job to be started', async () => {
        const [action] = (await schedule.describe()).info.recentActions;
        return (started = action?.action.workflow.workflowId) !== undefined;
      });
      expect(started).toMatch(new RegExp(`^job-${id}-\\d{4}-`));
      expect(await JobRun.of(all, started ?? '').result()).toMatchObject({
        name: 'nightly',
        outcome: 'succeeded',
      });
      expect(all.compute.created[0]?.env).toMatchObject({ JOB_EVENT: 'schedule' });
      await run('toggle');
      expect((await schedule.describe()).state).toMatchObject({
        paused: true,
        note: 'the cloud is down',
      });
      await run('delete');
      await expect(schedule.describe()).rejects.toThrow(ScheduleNotFoundError);
    } finally {
      await schedule.delete().catch((error: unknown) => {
        if (!(error instanceof ScheduleNotFoundError)) throw error;
      });
      await all.world.close();
    }
  });
});
