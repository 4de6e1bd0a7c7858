import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { RunnerStatus } from '../../core/contract/index.ts';
import { CliProcess } from '../support/cli.ts';
import { FakeCiServer } from '../support/fakeCiServer.ts';
import { FakeCompute } from '../support/fakeCompute.ts';
import { GrpcGate } from '../support/grpcGate.ts';
import { holdfastWorld, type HoldfastWorld } from '../support/holdfastWorld.ts';
import { SHORT_INTERVALS } from '../support/shortIntervals.ts';
import { describeWithLab } from '../support/lab.ts';
import { until } from '../support/until.ts';

await describeWithLab('holdfast run, as a process with signals', { temporal: true }, (lab) => {
  let compute: FakeCompute;
  let ci: FakeCiServer;
  let world: HoldfastWorld;
  let env: Record<string, string>;
  let folder: string;
  let name: string;
  const started: CliProcess[] = [];

  beforeEach(async () => {
    compute = new FakeCompute();
    ci = new FakeCiServer();
    world = await holdfastWorld(lab.temporal?.address ?? '', { compute, ciServers: ci });
    env = { TEMPORAL_ADDRESS: lab.temporal?.address ?? '', HOLDFAST_TASK_QUEUE: world.taskQueue };
    folder = await mkdtemp(join(tmpdir(), 'hf-cli-'));
    await writeFile(
      join(folder, 'short.json'),
      JSON.stringify({ organization: 'acme', intervals: SHORT_INTERVALS }),
    );
    name = `run-${randomUUID().slice(0, 8)}`;
  });
  afterEach(async () => {
    for (const each of started.splice(0))
      if (each.child.exitCode === null) each.child.kill('SIGKILL');
    await world.close();
    await rm(folder, { recursive: true });
  });

  function run(...more: string[]): CliProcess {
    return begin(more, false);
  }
  const onTerminal = (...more: string[]): CliProcess => begin(more, true);
  function begin(more: string[], terminal: boolean): CliProcess {
    const process = new CliProcess(
      ['run', '-f', join(folder, 'short.json'), '--name', name, ...more],
      env,
      { onTerminal: terminal },
    );
    started.push(process);
    return process;
  }
  const handle = () => world.client.workflow.getHandle(`runner-${name}`);
  const status = async (): Promise<RunnerStatus> => await handle().query('status');

  /** Brings the runner into a job. */
  async function makeBusy(): Promise<{ pod: string; runnerName: string }> {
    await until('a pod', async () => (await status()).pod !== undefined);
    const { pod = '' } = await status();
    compute.start(pod);
    await until('Idle', async () => (await status()).phase === 'Idle');
    const { runnerName } = await status();
    ci.connect(runnerName);
    ci.setBusy(runnerName, true);
    compute.startJob(pod);
    await until('Busy', async () => (await status()).phase === 'Busy');
    return { pod, runnerName };
  }
  function finish({ pod, runnerName }: { pod: string; runnerName: string }): void {
    ci.forget(runnerName);
    compute.endJob(pod);
    compute.end(pod, 0);
  }
  const cancelMode = async (): Promise<string | undefined> => (await status()).cancel?.mode;

  test('prints one line for each phase, and exits with 0 when its job has run', async () => {
    const cli = run();
    const job = await makeBusy();
    await cli.prints(/ {2}Busy/);
    finish(job);
    expect(await cli.exited).toEqual({ code: 0, signal: null });
    expect(cli.stderr).toBe(`started runner-${name}\n`);
    const lines = cli.stdout.trim().split('\n');
    for (const line of lines.slice(0, -1))
      expect(line).toMatch(new RegExp(`^\\d{4}-\\S+Z  runner-${name}  [A-Z]`));
    expect(lines.at(-1)).toMatch(new RegExp(`^runner-${name} succeeded: `));
    expect(new Set(lines.map((line) => line.replace(/^\S+/, ''))).size).toBe(lines.length);
  });

  test('with --json: the result alone on stdout, and the status of the outcome', async () => {
    const cli = run('--json');
    const { pod } = await makeBusy();
    compute.end(pod, 137, { oomKilled: true });
    ci.registrations.clear();
    expect((await cli.exited).code).toBe(1);
    expect(JSON.parse(cli.stdout)).toMatchObject({
      id: `runner-${name}`,
      outcome: 'failed',
      cause: 'oom_killed',
      attached: false,
    });
    for (const line of cli.stderr.trim().split('\n'))
      expect(JSON.parse(line)).toHaveProperty('event');
  });

  test('Ctrl-C once drains: the job completes', async () => {
    const cli = onTerminal('--static');
    const job = await makeBusy();
    cli.pressCtrlC();
    await cli.prints(/draining: the job may finish; press Ctrl-C again to stop it/);
    await until('the drain', async () => (await cancelMode()) === 'drain');
    await until('refusals', () => ci.count('remove') >= 2);
    expect(compute.deletions).toEqual([]);
    finish(job);
    expect((await cli.exited).code).toBe(1); // aborted is not succeeded
    expect(cli.stdout).toMatch(/aborted\/cancelled: /);
    expect(compute.deletions.filter(({ underJob }) => underJob)).toEqual([]);
  });

  test('Ctrl-C twice stops the job', async () => {
    const cli = onTerminal('--static');
    await makeBusy();
    cli.pressCtrlC();
    await cli.prints(/draining: /);
    await until('the drain', async () => (await cancelMode()) === 'drain');
    cli.pressCtrlC();
    await cli.prints(/stopping: /);
    expect((await cli.exited).code).toBe(1);
    expect(cli.stdout).toMatch(/aborted\/cancelled: /);
    expect(compute.deletions.map(({ underJob }) => underJob)).toContain(true);
  });

  test('Ctrl-C three times detaches immediately; the runner keeps its cancel request', async () => {
    compute.onDelete = 'linger'; // its grace takes longer than our patience
    const cli = onTerminal('--static');
    const { pod } = await makeBusy();
    cli.pressCtrlC();
    await cli.prints(/draining: /);
    await until('the drain', async () => (await cancelMode()) === 'drain');
    cli.pressCtrlC();
    await cli.prints(/stopping: /);
    await until('the stop', async () => (await cancelMode()) === 'stop');
    cli.pressCtrlC();
    expect((await cli.exited).code).toBe(1);
    expect(cli.stdout).toMatch(new RegExp(`exited: runner-${name} keeps its cancel request`));
    expect((await handle().describe()).status.name).toBe('RUNNING');
    expect(await cancelMode()).toBe('stop');
    await until('the deletion', () => compute.deletions.length > 0);
    ci.registrations.clear();
    compute.end(pod, 143);
    compute.vanish(pod);
    expect(await handle().result()).toMatchObject({ outcome: 'aborted' });
  });

  test.each([
    ['SIGINT', []],
    ['SIGTERM', ['--on-sigterm', 'stop']],
  ] as const)('without a terminal %s %j stops the job at once', async (signal, flags) => {
    const cli = run('--static', ...flags);
    await makeBusy();
    cli.signal(signal);
    await cli.prints(/stopping: /);
    expect((await cli.exited).code).toBe(1);
    expect(cli.stdout).toMatch(/aborted\/cancelled: /);
    expect(compute.deletions.map(({ underJob }) => underJob)).toContain(true);
  });

  test('without a terminal SIGINT twice detaches immediately; the runner keeps its cancel request', async () => {
    compute.onDelete = 'linger';
    const cli = run('--static');
    const { pod } = await makeBusy();
    cli.signal('SIGINT');
    await cli.prints(/stopping: /);
    await until('the stop', async () => (await cancelMode()) === 'stop');
    cli.signal('SIGINT');
    expect((await cli.exited).code).toBe(1);
    expect(cli.stdout).toMatch(new RegExp(`exited: runner-${name} keeps its cancel request`));
    await until('the deletion', () => compute.deletions.length > 0);
    ci.registrations.clear();
    compute.end(pod, 143);
    compute.vanish(pod);
    expect(await handle().result()).toMatchObject({ outcome: 'aborted' });
  });

  describe('before the start has returned', () => {
    let gate: GrpcGate;
    beforeEach(async () => {
      gate = await GrpcGate.open(lab.temporal?.address ?? '');
      env['TEMPORAL_ADDRESS'] = gate.address;
    });
    afterEach(() => gate.close());

    test('Ctrl-C cancels the runner as soon as it exists, and prints its end', async () => {
      const start = gate.held('StartWorkflowExecution');
      const cli = onTerminal('--static');
      const answer = await start;
      cli.pressCtrlC();
      await cli.prints(/draining: .*\(its start is not confirmed yet; the request follows it\)/);
      answer.release();
      expect((await cli.exited).code).toBe(1);
      expect(cli.stderr).toContain(`started runner-${name}`);
      expect(cli.stdout).toMatch(new RegExp(`runner-${name} aborted/cancelled: `));
      expect(await handle().result()).toMatchObject({ outcome: 'aborted', cause: 'cancelled' });
    });

    test('Ctrl-C without a response: the runner is found and cancelled', async () => {
      const start = gate.held('StartWorkflowExecution');
      const cli = onTerminal('--static');
      await start;
      cli.pressCtrlC();
      expect((await cli.exited).code).toBe(1);
      expect(cli.stdout).toMatch(new RegExp(`runner-${name} aborted/cancelled: `));
    });

    test('three times detaches immediately, with a warning that the state is unknown', async () => {
      const start = gate.held('StartWorkflowExecution');
      const cli = onTerminal('--static');
      const answer = await start;
      for (const says of [/draining: /, /stopping: /]) {
        cli.pressCtrlC();
        await cli.prints(says);
      }
      cli.pressCtrlC();
      expect(await cli.exited).toEqual({ code: 1, signal: null });
      expect(cli.stdout).toMatch(
        new RegExp(
          `exited before the start of runner-${name} .*holdfast runner cancel runner-${name}`,
        ),
      );
      expect(await cancelMode()).toBeUndefined();
      answer.release();
      await handle().signal('cancel');
      await handle().result();
    });

    test('SIGTERM detaches', async () => {
      const start = gate.held('StartWorkflowExecution');
      const cli = run('--static');
      await start;
      cli.signal('SIGTERM');
      expect(await cli.exited).toEqual({ code: 143, signal: null });
      expect(cli.stdout).toMatch(
        new RegExp(`detached \\(SIGTERM\\) before the start of runner-${name} was answered`),
      );
      expect(await cancelMode()).toBeUndefined();
      await handle().signal('cancel');
      await handle().result();
    });
  });

  test.each([
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const)(
    '%s detaches with status %i, the runner is not touched, and the same command attaches again',
    async (signal, code) => {
      const cli = run();
      const job = await makeBusy();
      await cli.prints(/ {2}Busy/);
      cli.signal(signal);
      expect(await cli.exited).toEqual({ code, signal: null });
      expect(cli.stdout).toContain(`detached (${signal}): runner-${name}`);
      expect(await cancelMode()).toBeUndefined();
      expect(compute.deletions).toEqual([]);

      const again = run();
      await again.prints(new RegExp(`attached to runner-${name}`));
      await again.prints(/ {2}Busy/);
      expect(compute.created).toHaveLength(1);
      finish(job);
      expect((await again.exited).code).toBe(0);

      // It has ended: --no-restart reports that; without it another one would start.
      const once = run('--no-restart', '--json');
      expect((await once.exited).code).toBe(0);
      expect(JSON.parse(once.stdout)).toMatchObject({ attached: true, outcome: 'succeeded' });
      expect(compute.created).toHaveLength(1);
      const attached = new CliProcess(['run', '--attach', name], env);
      expect((await attached.exited).code).toBe(0);
    },
  );

  test('a worker that is away for a while is a note in the line, not an end', async () => {
    const cli = run();
    const job = await makeBusy();
    await cli.prints(/ {2}Busy/);
    await world.suspend();
    await cli.prints(/no worker answers/);
    await world.resume();
    finish(job);
    expect((await cli.exited).code).toBe(0);
  });

  test('SIGINT ends another command by that signal, and nothing is left', async () => {
    const cli = run('--static');
    await makeBusy();
    const waiting = new CliProcess(['runner', 'drain', name, '--wait'], env);
    await until('the drain', async () => (await cancelMode()) === 'drain');
    waiting.signal('SIGINT');
    expect((await waiting.exited).signal ?? 'SIGINT').toBe('SIGINT');
    expect(await cancelMode()).toBe('drain');
    expect(cli.child.exitCode).toBeNull();
  });
});
