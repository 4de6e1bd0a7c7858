/** Output of the command about running runners: formats, --watch, top and shell completion. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { runCli, type CliRun, CliProcess } from '../support/cli.ts';
import { describeWithLab } from '../support/lab.ts';
import { memoryWorld, type MemoryWorld } from '../support/memoryWorld.ts';
import { until } from '../support/until.ts';

await describeWithLab('reading runners', { temporal: true }, (lab) => {
  let all: MemoryWorld;
  let env: Record<string, string>;
  let id: string;
  const set = `s${randomUUID().slice(0, 8)}`; // visibility is shared with other tests
  const cli = async (...args: string[]): Promise<CliRun> => await runCli(args, env);

  beforeAll(async () => {
    all = await memoryWorld(lab);
    env = {
      TEMPORAL_ADDRESS: lab.temporal?.address ?? '',
      HOLDFAST_TASK_QUEUE: all.world.taskQueue,
      HOLDFAST_TEMPORAL_UI_URL: 'http://ui.example',
    };
    id = (
      await cli('runner', 'start', '--org', 'acme', '--set', set, '--name', 'a', '-o', 'name')
    ).stdout.trim();
    await until(
      'visibility to list the runner',
      async () => (await cli('runner', 'list', '--set', set, '-o', 'name')).stdout === `${id}\n`,
    );
  });
  afterAll(async () => await all.world.close());

  test('the formats of a list, and the link to the same list in the UI', async () => {
    const yaml = parse((await cli('runner', 'list', '--set', set, '-o', 'yaml')).stdout) as {
      runners: { id: string }[];
      ui: string;
    };
    expect(yaml.runners.map((row) => row.id)).toEqual([id]);
    expect(new URL(yaml.ui).searchParams.get('query')).toBe(
      `WorkflowType = "runner" AND CloseTime IS NULL AND RunnerSet = '${set}'`,
    );
    const wide = await cli('runner', 'list', '--set', set, '-o', 'wide');
    expect(wide.stdout).toMatch(
      /^ID +PHASE +SCOPE +SET +AGE +OUTCOME +NAME +STATUS +STARTED +ENDED\n/,
    );
    expect(wide.stderr).toBe(`in Temporal's UI: ${yaml.ui}\n`);
  });

  test('an ID is completed, with the address of the command line', async () => {
    expect(id).toBe(`runner-${set}-a`);
    const { stdout } = await runCli(
      [
        'complete',
        '--',
        '--address',
        env['TEMPORAL_ADDRESS'] ?? '',
        'runner',
        'get',
        id.slice(0, -1),
      ],
      {},
    );
    expect(stdout).toMatch(new RegExp(`^${id}\\t\\w+$`, 'm'));
  });

  test('an ID that a shell would execute is not completed', async () => {
    const hostile = `${id};touch owned;#`;
    const { handle } = await all.world.start({}, hostile);
    await until('visibility to list the runner', async () =>
      (await cli('runner', 'list', '-o', 'name')).stdout.includes(hostile),
    );
    const { stdout } = await runCli(
      ['complete', '--', '--address', env['TEMPORAL_ADDRESS'] ?? '', 'runner', 'get', id],
      {},
    );
    expect(stdout).toMatch(new RegExp(`^${id}\\t\\w+$`, 'm'));
    expect(stdout).not.toContain('owned');
    await handle.terminate();
  });

  test('top lists the runner, and shows how many failed', async () => {
    const { stdout } = await cli('top', '-o', 'json', '--limit', '1000');
    expect(JSON.parse(stdout)).toMatchObject({
      runners: expect.arrayContaining([expect.objectContaining({ id })]),
      endedBadly: { count: expect.any(Number), ui: expect.stringContaining('http://ui.example') },
    });
    expect((await cli('top')).stdout).toMatch(
      /^\S+Z {2}runners: \d+ .*\n\d+ failed or errored within an hour/,
    );
  });

  test('several IDs in one call: each is shown or cancelled, and a missing one does not hide the others', async () => {
    const others = await Promise.all(
      ['b', 'c'].map(async (name) =>
        (
          await cli('runner', 'start', '--org', 'acme', '--set', set, '--name', name, '-o', 'name')
        ).stdout.trim(),
      ),
    );
    const got = await cli('runner', 'get', ...others, 'missing', '--json');
    expect(got.status).toBe(3);
    expect((JSON.parse(got.stdout) as { runners: { id: string }[] }).runners).toMatchObject(
      others.map((other) => ({ id: other, status: 'RUNNING' })),
    );
    expect(JSON.parse(got.stderr)).toMatchObject({ error: { code: 'not_found' } });
    const cancelled = await cli(
      'runner',
      'cancel',
      ...others,
      '--mode',
      'force',
      '--wait',
      '--json',
    );
    expect(cancelled.status).toBe(0);
    expect((JSON.parse(cancelled.stdout) as { runners: object[] }).runners).toMatchObject(
      others.map((other) => ({ id: other, accepted: true, end: { outcome: 'aborted' } })),
    );
  });

  test('the id of another workflow is not found, for each kind', async () => {
    for (const args of [
      ['job', 'get', id],
      ['job', 'cancel', id],
      ['job', 'logs', id],
      ['set', 'get', id],
    ])
      expect([args, (await cli(...args)).status]).toEqual([args, 3]);
  });

  test('--watch prints changes until the end', async () => {
    const watching = new CliProcess(
      ['runner', 'get', id, '--watch', '--interval', '500ms', '--json'],
      env,
    );
    await watching.prints(/"status":"RUNNING"/);
    expect((await cli('runner', 'cancel', id, '--mode', 'force', '--wait')).status).toBe(0);
    expect(await watching.exited).toEqual({ code: 0, signal: null });
    const statuses = watching.stdout
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { status: string }).status);
    expect([statuses[0], statuses.at(-1)]).toEqual(['RUNNING', 'COMPLETED']);
  });
});
