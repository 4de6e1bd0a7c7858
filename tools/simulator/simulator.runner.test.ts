import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startSimulator, type Simulator } from './simulator.ts';
import { RunnerProcess, asOwner, jitEnv, tokenEnv } from '../../test/support/runnerProcess.ts';

let simulator: Simulator;
let runners: RunnerProcess[] = [];

beforeEach(async () => {
  simulator = await startSimulator({ offlineAfterMs: 300 });
});
afterEach(async () => {
  for (const runner of runners) runner.kill('SIGKILL');
  await Promise.all(runners.map((runner) => runner.exited));
  runners = [];
  await simulator.stop();
});

function start(env: Record<string, string>): RunnerProcess {
  const runner = new RunnerProcess({
    SIM_RUNNER_INTERRUPT_MS: '300',
    SIM_RUNNER_TERMINATE_MS: '200',
    ...env,
  });
  runners.push(runner);
  return runner;
}
const online = (name: string): Promise<unknown> =>
  simulator.waitFor(() => simulator.runner(name)?.status === 'online', `${name} online`);
const path = (id: number): string => `/orgs/acme/actions/runners/${id}`;

describe('a single-use runner', () => {
  test('takes one job, prints what the real one prints, leaves no registration and exits 0', async () => {
    const { env, id } = await jitEnv(simulator.url, 'one', ['self-hosted', 'GPU']);
    const runner = start(env);
    await online('one');
    const job = simulator.queueJob({
      repo: 'acme/widgets',
      labels: ['gpu'],
      command:
        'echo "$GITHUB_JOB in $GITHUB_RUN_ID on $RUNNER_NAME, config: ${ACTIONS_RUNNER_INPUT_JITCONFIG:-none}"; echo oops >&2',
    });
    const done = await simulator.waitForJob(job.id, 'completed');
    expect(done).toMatchObject({ conclusion: 'success', runner_id: id, runner_name: 'one' });
    expect(done.output.toSorted()).toEqual([`build in ${job.run_id} on one, config: none`, 'oops']);
    expect(await runner.exited).toEqual({ code: 0, signal: null });
    expect(runner.output).toMatch(
      /√ Connected to GitHub\n\nCurrent runner version: '2\.\d+\.\d+'\n\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ: Listening for Jobs\n/,
    );
    expect(runner.output).toMatch(
      /\dZ: Running job: build\n\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ: Job build completed with result: Succeeded\n/,
    );
    expect(simulator.runners()).toEqual([]);
    expect((await asOwner(simulator.url, 'DELETE', path(id))).status).toBe(404);
  });

  test("a job that fails is the job's failure, not the runner's", async () => {
    const runner = start((await jitEnv(simulator.url, 'failing')).env);
    const job = simulator.queueJob({ repo: 'acme/widgets', command: 'exit 3' });
    expect(await simulator.waitForJob(job.id, 'completed')).toMatchObject({
      conclusion: 'failure',
      output: ['Error: Process completed with exit code 3.'],
    });
    expect((await runner.exited).code).toBe(0);
  });

  test('a second process with the same JIT config meets a session conflict, and after the job a deleted registration', async () => {
    const { env } = await jitEnv(simulator.url, 'twice');
    const first = start(env);
    await online('twice');
    const second = start(env);
    await second.printed('A session for this runner already exists.');
    simulator.queueJob({ repo: 'acme/widgets' });
    expect((await first.exited).code).toBe(0);
    const third = start(env);
    expect((await third.exited).code).toBe(0);
    expect(third.output).toContain('The runner registration has been deleted from the server');
    expect(third.output).toContain(
      'Runner listener exit with terminated error, stop the service, no retry needed.',
    );
  });
});

describe('DELETE of a busy runner', () => {
  test.each([
    ['current', 'Runner "busy" is currently running a job and cannot be deleted'],
    ['older', 'Bad request - Runner "busy" is still running a job"'],
  ] as const)('answers 422 in the %s text and lets the job go on', async (text, message) => {
    simulator.setBusyText(text);
    const { env, id } = await jitEnv(simulator.url, 'busy');
    start(env);
    const gate = join(mkdtempSync(join(tmpdir(), 'gate-')), 'open');
    const job = simulator.queueJob({
      repo: 'acme/widgets',
      command: `until [ -e ${gate} ]; do sleep 0.05; done; echo through`,
    });
    await simulator.waitForJob(job.id, 'in_progress');
    expect((await asOwner(simulator.url, 'GET', path(id))).body).toMatchObject({
      status: 'online',
      busy: true,
    });
    const refused = await asOwner(simulator.url, 'DELETE', path(id));
    expect(refused).toMatchObject({ status: 422, body: { message } });
    writeFileSync(gate, '');
    expect(await simulator.waitForJob(job.id, 'completed')).toMatchObject({
      conclusion: 'success',
      output: ['through'],
    });
  });

  test('answers 204 early in the job when told so; the job goes on all the same, and the runner is gone after it', async () => {
    simulator.addFault({ kind: 'delete_accepts_busy', forMs: 60_000 });
    const runner = start(await tokenEnv(simulator, 'early'));
    const gate = join(mkdtempSync(join(tmpdir(), 'gate-')), 'open');
    const job = simulator.queueJob({
      repo: 'acme/widgets',
      command: `until [ -e ${gate} ]; do sleep 0.05; done; echo through`,
    });
    await simulator.waitForJob(job.id, 'in_progress');
    const { id } = simulator.runner('early') ?? { id: 0 };
    expect((await asOwner(simulator.url, 'DELETE', path(id))).status).toBe(204);
    expect(simulator.runners()).toEqual([]);
    writeFileSync(gate, '');
    expect(await simulator.waitForJob(job.id, 'completed')).toMatchObject({
      conclusion: 'success',
      output: ['through'],
    });
    expect((await runner.exited).code).toBe(0);
    expect(runner.output).toContain(
      'Runner listener exit with terminated error, stop the service, no retry needed.',
    );
  });
});

describe('a static runner', () => {
  test('registers with a token and its own labels, takes job after job, and goes when it is deleted idle', async () => {
    const runner = start(await tokenEnv(simulator, 'static', { RUNNER_LABELS: 'big, blue' }));
    await online('static');
    expect(simulator.runner('static')).toMatchObject({
      ephemeral: false,
      labels: ['self-hosted', 'Linux', 'X64', 'big', 'blue'],
      scope: 'orgs/acme',
    });
    for (const name of ['first', 'second']) {
      const job = simulator.queueJob({
        repo: 'acme/widgets',
        name,
        labels: ['big', 'BLUE'],
        command: `echo ${name}`,
      });
      expect((await simulator.waitForJob(job.id, 'completed')).output).toEqual([name]);
    }
    await simulator.waitFor(() => simulator.runner('static')?.busy === false, 'idle again');
    expect(
      (await asOwner(simulator.url, 'DELETE', path(simulator.runner('static')?.id ?? 0))).status,
    ).toBe(204);
    expect((await runner.exited).code).toBe(0);
    expect(runner.output).toContain(
      'Runner listener exit with terminated error, stop the service, no retry needed.',
    );
  });

  test('an unknown or expired token gets an opaque 404 and exit code 1', async () => {
    const runner = start({ ...(await tokenEnv(simulator, 'late')), RUNNER_TOKEN: 'EXPIRED' });
    expect((await runner.exited).code).toBe(1);
    expect(runner.output).toContain(
      'Response status code does not indicate success: 404 (Not Found).',
    );
    expect(simulator.runners()).toEqual([]);
  });
});

describe('signals', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)(
    '%s while idle: exit 0, the registration stays, offline',
    async (signal) => {
      const runner = start((await jitEnv(simulator.url, 'idle')).env);
      await runner.printed('Listening for Jobs');
      runner.kill(signal);
      expect(await runner.exited).toEqual({ code: 0, signal: null });
      await simulator.waitFor(() => simulator.runner('idle')?.status === 'offline', 'offline');
      expect(simulator.runner('idle')).toMatchObject({ status: 'offline', busy: false });
    },
  );

  test('SIGTERM while busy interrupts the job, reports it Canceled and leaves no registration of a single-use runner', async () => {
    const runner = start((await jitEnv(simulator.url, 'interrupted')).env);
    const job = simulator.queueJob({
      repo: 'acme/widgets',
      command: 'trap "echo interrupted; exit 9" INT; echo ready; sleep 60 & wait',
    });
    await simulator.waitFor(
      () => simulator.job(job.id)?.output.includes('ready'),
      'the job is ready',
    );
    runner.kill('SIGTERM');
    expect(await runner.exited).toEqual({ code: 0, signal: null });
    expect(await simulator.waitForJob(job.id, 'completed')).toMatchObject({
      conclusion: 'cancelled',
    });
    expect(simulator.job(job.id)?.output).toContain('interrupted');
    expect(runner.output).toMatch(/Job build completed with result: Canceled/);
    expect(simulator.runners()).toEqual([]);
  });

  test('a job that ignores SIGINT and SIGTERM is killed', async () => {
    const runner = start((await jitEnv(simulator.url, 'stubborn')).env);
    const job = simulator.queueJob({
      repo: 'acme/widgets',
      command:
        "trap 'echo got int' INT; trap 'echo got term' TERM; echo ready; while :; do sleep 0.05; done",
    });
    await simulator.waitFor(
      () => simulator.job(job.id)?.output.includes('ready'),
      'the job is ready',
    );
    simulator.cancelJob(job.id);
    const done = await simulator.waitForJob(job.id, 'completed');
    expect(done.conclusion).toBe('cancelled');
    expect(done.output).toEqual(expect.arrayContaining(['got int', 'got term']));
    expect((await runner.exited).code).toBe(0);
  });
});

describe('job hooks', () => {
  const script = (text: string): string => {
    const file = join(mkdtempSync(join(tmpdir(), 'hook-')), 'hook.sh');
    writeFileSync(file, text);
    chmodSync(file, 0o755);
    return file;
  };

  test('run before and after the job, also after one that failed', async () => {
    start({
      ...(await jitEnv(simulator.url, 'hooked')).env,
      ACTIONS_RUNNER_HOOK_JOB_STARTED: script('echo before $GITHUB_JOB'),
      ACTIONS_RUNNER_HOOK_JOB_COMPLETED: script('echo after'),
    });
    const job = simulator.queueJob({ repo: 'acme/widgets', command: 'echo job; exit 1' });
    const done = await simulator.waitForJob(job.id, 'completed');
    expect(done.conclusion).toBe('failure');
    const told = done.output.filter((line) => ['before build', 'job', 'after'].includes(line));
    expect(told).toEqual(['before build', 'job', 'after']);
  });

  test('a started hook that fails fails the job, which does not run', async () => {
    start({
      ...(await jitEnv(simulator.url, 'unhooked')).env,
      ACTIONS_RUNNER_HOOK_JOB_STARTED: script('exit 4'),
    });
    const job = simulator.queueJob({ repo: 'acme/widgets', command: 'echo job' });
    const done = await simulator.waitForJob(job.id, 'completed');
    expect(done.conclusion).toBe('failure');
    expect(done.output).not.toContain('job');
  });
});

describe('a refused version', () => {
  test.each([
    ['1', 7],
    ['0', 1],
  ])('with ACTIONS_RUNNER_RETURN_VERSION_DEPRECATED_EXIT_CODE=%s exits %i', async (flag, code) => {
    simulator.setDeprecatedVersions(['2.1.0']);
    const runner = start({
      ...(await jitEnv(simulator.url, 'old')).env,
      SIM_RUNNER_VERSION: '2.1.0',
      ACTIONS_RUNNER_RETURN_VERSION_DEPRECATED_EXIT_CODE: flag,
    });
    expect((await runner.exited).code).toBe(code);
    expect(runner.output).toContain(
      'Runner version v2.1.0 is deprecated and cannot receive messages.',
    );
  });
});
