import { afterEach, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { freePort } from '../lab/ports.ts';
import { SimulatorClient } from './client.ts';
import type { SimulatorOptions } from './options.ts';
import { startSimulator, type Simulator } from './simulator.ts';
import { RunnerProcess, asOwner, jitEnv, tokenEnv } from '../../test/support/runnerProcess.ts';

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

async function simulate(options: SimulatorOptions): Promise<Simulator> {
  const simulator = await startSimulator(options);
  cleanups.push(() => simulator.stop());
  return simulator;
}
function run(env: Record<string, string>): RunnerProcess {
  const runner = new RunnerProcess(env);
  cleanups.push(() => (runner.kill('SIGKILL'), runner.exited));
  return runner;
}
const folder = (): string => mkdtempSync(join(tmpdir(), 'simulator-'));

test('a runner that dies with its job stays busy until the lease ends; then the job is lost and the runner offline', async () => {
  const simulator = await simulate({ leaseMs: 4_000, renewEveryMs: 200, offlineAfterMs: 200 });
  const { env, id } = await jitEnv(simulator.url, 'dies');
  const runner = run(env);
  const pidFile = join(folder(), 'pid');
  const job = simulator.queueJob({
    repo: 'acme/widgets',
    command: `echo $$ > ${pidFile}; echo started; exec sleep 60`,
  });
  await simulator.waitFor(() => simulator.job(job.id)?.output.includes('started'), 'output');
  runner.kill('SIGKILL');
  process.kill(Number(readFileSync(pidFile, 'utf8')), 'SIGKILL');
  await runner.exited;
  expect((await asOwner(simulator.url, 'DELETE', `/orgs/acme/actions/runners/${id}`)).status).toBe(
    422,
  );
  await simulator.waitFor(() => simulator.runner('dies')?.status === 'offline', 'offline');
  expect(simulator.runner('dies')).toMatchObject({ busy: true, status: 'offline' });
  const lost = await simulator.waitForJob(job.id, 'completed');
  expect(lost).toMatchObject({
    conclusion: 'failure',
    annotation: expect.stringContaining('lost communication'),
  });
  expect(simulator.runner('dies')).toMatchObject({ busy: false, status: 'offline' });
  expect((await asOwner(simulator.url, 'DELETE', `/orgs/acme/actions/runners/${id}`)).status).toBe(
    204,
  );
});

test('a job that a runner never starts goes back to the queue, three times at most', async () => {
  const simulator = await simulate({ acceptMs: 100, offlineAfterMs: 100 });
  simulator.addFault({ kind: 'status', status: 503, endpoint: 'POST /_runner/jobs/*/start' });
  run(await tokenEnv(simulator, 'mute'));
  const job = simulator.queueJob({ repo: 'acme/widgets' });
  const lost = await simulator.waitForJob(job.id, 'completed');
  expect(lost).toMatchObject({ conclusion: 'failure', assignments: 3, started_at: null });
});

test('a runner survives a restart of the server, with its job and all of its output', async () => {
  const stateFile = join(folder(), 'state.json');
  const options = { stateFile, port: await freePort(), leaseMs: 60_000, renewEveryMs: 100 };
  const first = await startSimulator(options);
  const gate = join(folder(), 'open');
  const runner = run((await jitEnv(first.url, 'survivor')).env);
  const job = first.queueJob({
    repo: 'acme/widgets',
    command: `echo one; until [ -e ${gate} ]; do sleep 0.05; done; echo two`,
  });
  await first.waitFor(() => first.job(job.id)?.output.includes('one'), 'output');
  await first.stop();
  expect(statSync(stateFile).mode & 0o777).toBe(0o600);
  const second = await simulate(options);
  expect(second.job(job.id)).toMatchObject({ status: 'in_progress', runner_name: 'survivor' });
  expect(second.runner('survivor')).toMatchObject({ busy: true });
  writeFileSync(gate, '');
  expect(await second.waitForJob(job.id, 'completed')).toMatchObject({
    conclusion: 'success',
    output: ['one', 'two'],
  });
  expect((await runner.exited).code).toBe(0);
  expect(second.runners()).toEqual([]);
});

test('dropped connections lose nothing and double nothing of a job', async () => {
  const simulator = await simulate({});
  for (const endpoint of [
    'POST /_runner/jobs/*/start',
    'POST /_runner/jobs/*/output',
    'POST /_runner/jobs/*/complete',
  ]) {
    simulator.addFault({ kind: 'drop', when: 'after', endpoint, count: 2 });
    simulator.addFault({ kind: 'drop', when: 'before', endpoint, count: 1 });
  }
  const runner = run((await jitEnv(simulator.url, 'shaky')).env);
  const job = simulator.queueJob({
    repo: 'acme/widgets',
    command: 'for i in 1 2 3; do echo $i; done',
  });
  expect(await simulator.waitForJob(job.id, 'completed')).toMatchObject({
    conclusion: 'success',
    output: ['1', '2', '3'],
    assignments: 1,
  });
  expect((await runner.exited).code).toBe(0);
  expect(runner.output).toContain('completed with result: Succeeded');
  expect(simulator.faults().every((fault) => fault.hits === fault.count)).toBe(true);
});

test('a registration removed by its owner in the middle of a job is told to the runner only after the job', async () => {
  const simulator = await simulate({});
  const runner = run(await tokenEnv(simulator, 'removed'));
  const gate = join(folder(), 'open');
  const job = simulator.queueJob({
    repo: 'acme/widgets',
    command: `until [ -e ${gate} ]; do sleep 0.05; done; echo through`,
  });
  await simulator.waitForJob(job.id, 'in_progress');
  expect(simulator.removeRunner(simulator.runner('removed')?.id ?? 0)).toBe(true);
  writeFileSync(gate, '');
  expect(await simulator.waitForJob(job.id, 'completed')).toMatchObject({
    conclusion: 'success',
    output: ['through'],
  });
  expect((await runner.exited).code).toBe(0);
});

test('a single-use registration may linger, busy, after its job', async () => {
  const simulator = await simulate({ ephemeralRemovalMs: 2_000 });
  const { env, id } = await jitEnv(simulator.url, 'lingers');
  run(env);
  const job = simulator.queueJob({ repo: 'acme/widgets' });
  await simulator.waitForJob(job.id, 'completed');
  expect((await asOwner(simulator.url, 'DELETE', `/orgs/acme/actions/runners/${id}`)).status).toBe(
    422,
  );
  await simulator.waitFor(() => simulator.runners().length === 0, 'the registration is gone');
});

test('the program serves other processes through the control API', async () => {
  const main = fileURLToPath(new URL('./main.ts', import.meta.url));
  const child = spawn(process.execPath, [main, '--port', '0', '--token', 'ghp_simulator'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  cleanups.push(async () => (child.kill('SIGKILL'), exited));
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  const client = new SimulatorClient((JSON.parse(line) as { url: string }).url);
  const { env, id } = await jitEnv(client.url, 'remote');
  run(env);
  await client.waitFor(async () => (await client.runner('remote'))?.status === 'online', 'online');
  const job = await client.queueJob({ repo: 'acme/widgets', command: 'echo remote' });
  expect(await client.waitForJob(job.id, 'completed')).toMatchObject({
    conclusion: 'success',
    output: ['remote'],
    runner_id: id,
  });
  const fault = await client.addFault({ kind: 'status', status: 502, count: 1 });
  expect((await asOwner(client.url, 'GET', '/orgs/acme/actions/runners')).status).toBe(502);
  expect(await client.faults()).toEqual([{ ...fault, hits: 1 }]);
  expect((await client.requestCounts()).byStatus).toEqual({
    'POST /orgs/{org}/actions/runners/generate-jitconfig 201': 1,
    'GET /orgs/{org}/actions/runners 502': 1,
  });
  await client.setAccess('default', { scopes: [] });
  expect((await asOwner(client.url, 'GET', '/orgs/acme/actions/runners')).status).toBe(404);
  await expect(client.job(1)).rejects.toThrow('answered 404');
  await expect(client.queueJob({ repo: 'no-owner' })).rejects.toThrow('job needs repo');
  child.kill('SIGTERM');
  expect((await exited)[0]).toBe(0);
});
