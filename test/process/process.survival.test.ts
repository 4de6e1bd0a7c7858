import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  identify,
  isAlive,
  type ProcessIdentity,
} from '../../activities/compute/process/processIdentity.ts';
import { startProcessHarness, type ProcessHarness } from '../support/processHarness.ts';
import type { ProcessWorkerJob } from '../support/processWorker.ts';
import { untilSeen } from '../support/until.ts';
import type { PodRequest, PodView } from '../../core/domain/pod.ts';

const WORKER = new URL('../support/processWorker.ts', import.meta.url).pathname;

let harness: ProcessHarness;
const strangers: ChildProcess[] = [];

beforeEach(async () => {
  harness = await startProcessHarness();
});

afterEach(async () => {
  for (const child of strangers.splice(0)) child.kill('SIGKILL');
  await harness.close();
});

/** Starts a worker process, as leader of a group of its own or in a terminal of its own, and waits until it has made its pod. */
async function startWorker(
  job: ProcessWorkerJob,
  how: { terminal?: boolean; env?: Record<string, string> } = {},
): Promise<{ worker: ChildProcess; pod: PodView }> {
  const env = { ...process.env, ...how.env, JOB: JSON.stringify(job) };
  const line = [process.execPath, WORKER];
  const script =
    process.platform === 'darwin'
      ? ['-q', '/dev/null', ...line]
      : ['-qfc', line.join(' '), '/dev/null'];
  const worker = how.terminal
    ? spawn('script', script, { env, stdio: ['pipe', 'pipe', 'inherit'] })
    : spawn(line[0]!, line.slice(1), { env, detached: true, stdio: ['pipe', 'pipe', 'inherit'] });
  strangers.push(worker);
  for await (const text of createInterface({ input: worker.stdout! })) {
    if (text.startsWith('{')) return { worker, pod: JSON.parse(text) as PodView };
  }
  throw new Error('the worker ended without a word');
}

async function kill(worker: ChildProcess, target: number): Promise<void> {
  const exited = once(worker, 'exit');
  process.kill(target, 'SIGKILL');
  await exited;
}

async function stranger(): Promise<ProcessIdentity> {
  const child = spawn('sleep', ['600'], { detached: true, stdio: 'ignore' });
  strangers.push(child);
  await once(child, 'spawn');
  return identify(child.pid!);
}

const newRequest = (): PodRequest => harness.request(harness.newIdentity());
const shell = (script: string, env: Record<string, string> = {}): PodRequest => ({
  ...newRequest(),
  command: ['sh', '-c', script],
  env,
});
const podFile = (pod: PodView, file: string): string =>
  join(harness.stateDir, 'pods', pod.name, file);
const readNumber = async (file: string): Promise<number> =>
  Number(
    await untilSeen(
      `${file} is written`,
      () => readFile(file, 'utf8').catch(() => ''),
      (text) => text.endsWith('\n'),
    ),
  );
const untilDead = (process: ProcessIdentity): Promise<unknown> =>
  untilSeen(
    `process ${process.pid} is dead`,
    () => isAlive(process),
    (alive) => !alive,
  );

async function identities(
  pod: PodView,
): Promise<{ wrapper: ProcessIdentity; runner: ProcessIdentity }> {
  const { wrapper, runner } = await harness.pids(pod);
  return { wrapper: await identify(wrapper), runner: await identify(runner) };
}

describe('a worker dies', () => {
  test.each([
    ['by SIGKILL', {}, (worker: ChildProcess) => worker.pid!],
    ['by SIGKILL of its process group', {}, (worker: ChildProcess) => -worker.pid!],
    ['because its terminal is closed', { terminal: true }, (worker: ChildProcess) => worker.pid!],
  ])(
    '%s: the runner continues, another worker adopts it and learns how it ends',
    async (_how, options, target) => {
      const { worker, pod } = await startWorker(
        { stateDir: harness.stateDir, request: newRequest() },
        options,
      );
      await harness.makeRunning(pod);
      const { runner } = await identities(pod);
      await kill(worker, target(worker));

      const adopter = await harness.watch(harness.second);
      expect(adopter.of(pod)[0]?.pod).toMatchObject({
        uid: pod.uid,
        startedAt: expect.any(String),
        ended: false,
      });
      expect(await isAlive(runner)).toBe(true);
      await harness.end(pod, 7);
      const { pod: ended } = await adopter.until('ended', (event) => event.pod.ended);
      expect(ended).toMatchObject({ uid: pod.uid, deleted: false, exit: { code: 7 } });
      await adopter.stop();
      await untilDead(runner);
    },
  );

  test('after a deletion: the grace period applies without a worker, and the pod is deleted', async () => {
    const notes = join(harness.stateDir, '..', 'notes');
    // Ignores SIGTERM, counts it, and writes the time of each.
    const request = shell(
      'trap "echo term >> $NOTES" TERM; echo ready >> $NOTES; while :; do sleep 0.02; done',
      { NOTES: notes },
    );
    const { worker, pod } = await startWorker({
      stateDir: harness.stateDir,
      request,
      deletion: { onceThereIs: notes, gracePeriodSeconds: 20 },
    });
    await kill(worker, worker.pid!);
    const { deadline } = JSON.parse(await readFile(podFile(pod, 'stop.json'), 'utf8')) as {
      deadline: string;
    };
    const { runner, wrapper } = await identities(pod);
    // No look through the port from here on: an observer would not be "no worker alive".
    await untilSeen(
      'the runner is dead',
      () => isAlive(runner),
      (alive) => !alive,
    );
    const lateMs = Date.now() - Date.parse(deadline);
    expect(lateMs).toBeGreaterThanOrEqual(0);
    expect(lateMs).toBeLessThan(60_000);
    await untilDead(wrapper);
    expect(existsSync(podFile(pod, 'spec.json'))).toBe(false);
    expect(await readFile(notes, 'utf8')).toBe('ready\nterm\n');
  });

  test('between the creation of the folder and the start of the wrapper: a retry starts the runner exactly once', async () => {
    const marks = join(harness.stateDir, '..', 'marks');
    const request = shell('echo $$ >> $MARKS; sleep 600', { MARKS: marks });
    const name = harness.compute.podName(request.identity);
    const spec = {
      name,
      uid: 'made-by-the-dead',
      workflowId: 'w',
      node: 'n',
      createdAt: new Date().toISOString(),
      command: request.command,
      env: request.env,
      labels: {},
      terminationGracePeriodSeconds: 5,
    };
    await mkdir(join(harness.stateDir, 'pods', name), { recursive: true });
    await writeFile(join(harness.stateDir, 'pods', name, 'spec.json'), JSON.stringify(spec));

    const pods = await Promise.all(
      [harness.compute, harness.second, harness.compute].map((compute) =>
        compute.createPod(request, undefined),
      ),
    );
    expect(pods.map((pod) => pod.uid)).toEqual([
      'made-by-the-dead',
      'made-by-the-dead',
      'made-by-the-dead',
    ]);
    await untilSeen(
      'the runner has started',
      () => harness.compute.getPod({ name }),
      (view) => view?.startedAt !== undefined,
    );
    // All wrappers but one have given up.
    await readNumber(marks);
    await untilSeen(
      'one wrapper is left',
      () => wrappersOf(name),
      (pids) => pids.length === 1,
    );
    expect((await readFile(marks, 'utf8')).trim().split('\n')).toHaveLength(1);
  });
});

describe('a wrapper dies', () => {
  test('by SIGKILL: every observer sees the pod as deleted, and nothing of its runner is left', async () => {
    const daemon = join(harness.stateDir, '..', 'daemon');
    const request = shell('setsid sh -c \'echo $$ > "$DAEMON"; sleep 600\' & echo running; wait', {
      DAEMON: daemon,
    });
    const watches = [await harness.watch(), await harness.watch(harness.second)];
    const pod = await harness.compute.createPod(request, undefined);
    await harness.makeRunning(pod);
    const { wrapper, runner } = await identities(pod);
    const escaped = await identify(await readNumber(daemon));
    for (const watch of watches)
      await watch.until('started', ({ pod: view }) => view.startedAt !== undefined);
    process.kill(wrapper.pid, 'SIGKILL');
    for (const watch of watches) {
      const { pod: gone } = await watch.until('gone', (event) => event.pod.deleted);
      // Nobody knows how it ended, so nothing is claimed.
      expect(gone).not.toHaveProperty('exit');
      await watch.stop();
    }
    await untilDead(runner);
    if (process.platform === 'linux') await untilDead(escaped);
    else process.kill(escaped.pid, 'SIGKILL');
  });

  test('and its PID is reused: the other process is not mistaken for it', async () => {
    const pod = await harness.compute.createPod(newRequest(), undefined);
    await harness.makeRunning(pod);
    const { wrapper, runner } = await identities(pod);
    const [newWrapper, newRunner] = [await stranger(), await stranger()];
    await harness.vanish(pod);
    await untilDead(wrapper);
    // As if the kernel had given the pids again: the same files, naming processes that started later.
    await writeFile(
      podFile(pod, 'owner.json'),
      JSON.stringify({ wrapper: { ...wrapper, pid: newWrapper.pid } }),
    );
    await writeFile(
      podFile(pod, 'started.json'),
      JSON.stringify({ process: { ...runner, pid: newRunner.pid }, at: pod.createdAt }),
    );
    expect(await harness.compute.deletePod(pod, { gracePeriodSeconds: 0 })).toBe('deleted');
    expect(await harness.compute.getPod(pod)).toBeUndefined();
    expect([await isAlive(newWrapper), await isAlive(newRunner)]).toEqual([true, true]);
  });

  test('by SIGTERM, as during a shutdown: the runner has its grace period, and the pod keeps its result', async () => {
    const pod = await harness.compute.createPod(newRequest(), undefined);
    await harness.makeRunning(pod);
    const { wrapper } = await identities(pod);
    process.kill(wrapper.pid, 'SIGTERM');
    const view = await untilSeen(
      'ended',
      () => harness.compute.getPod(pod),
      (seen) => seen?.ended === true,
    );
    expect(view).toMatchObject({
      deleted: false,
      terminating: false,
      reason: 'Shutdown',
      exit: { code: 143 },
    });
    expect(await harness.output(pod)).toContain('got TERM');
  });
});

describe('nothing is left over', () => {
  test('the folder is deleted: the runner is killed', async () => {
    const pod = await harness.compute.createPod(newRequest(), undefined);
    await harness.makeRunning(pod);
    const { wrapper, runner } = await identities(pod);
    const watch = await harness.watch();
    await rm(join(harness.stateDir, 'pods', pod.name), { recursive: true });
    await watch.until('gone', (event) => event.pod.deleted);
    await watch.stop();
    await untilDead(runner);
    await untilDead(wrapper);
  });

  test('the runner ends: its child processes end too, and the worker keeps no zombie', async () => {
    const children = join(harness.stateDir, '..', 'children');
    const request = shell(
      'sleep 600 & echo $! > "$CHILDREN.a"; setsid sh -c \'echo $$ > "$CHILDREN.b"; sleep 600\' & while [ ! -s "$CHILDREN.b" ]; do sleep 0.02; done; exit 0',
      { CHILDREN: children },
    );
    const pod = await harness.compute.createPod(request, undefined);
    const [inGroup, escaped] = [
      await readNumber(`${children}.a`),
      await readNumber(`${children}.b`),
    ];
    await untilSeen(
      'ended',
      () => harness.compute.getPod(pod),
      (view) => view?.exit?.code === 0,
    );
    await untilDead(await identify(inGroup));
    if (process.platform === 'linux') await untilDead(await identify(escaped));
    else process.kill(escaped, 'SIGKILL');
    // The wrapper was this process' child: gone from the process table, not only dead.
    const owner = JSON.parse(await readFile(podFile(pod, 'owner.json'), 'utf8')) as {
      wrapper: ProcessIdentity;
    };
    await untilSeen(
      'the wrapper is reaped',
      async () => canSignal(owner.wrapper.pid),
      (there) => !there,
    );
  });

  test('the state directory is deleted: the watch reports all pods as deleted, lists again, and sees new ones', async () => {
    const watch = await harness.watch();
    const pod = await harness.compute.createPod(newRequest(), undefined);
    await harness.makeRunning(pod);
    const { wrapper } = await identities(pod);
    await watch.until('started', (event) => event.pod.startedAt !== undefined);
    await rm(harness.stateDir, { recursive: true, maxRetries: 5 });
    await watch.until('gone', (event) => event.pod.uid === pod.uid && event.pod.deleted);
    await untilSeen(
      'listed again',
      async () => watch.relists.length,
      (times) => times >= 2,
    );
    const next = await harness.second.createPod(newRequest(), undefined);
    await watch.until('the next pod', (event) => event.pod.uid === next.uid);
    await watch.stop();
    await untilDead(wrapper);
  });
});

describe('secrets', () => {
  test("the runner gets its registration and nothing of the worker's environment; its file is private, and deleted when it runs", async () => {
    const request = {
      ...newRequest(),
      command: ['sh', '-c', 'env; echo running; sleep 600'],
      env: { PLAIN: 'yes', RUNNER_TOKEN: 'from the spec' },
    };
    const registration = { runnerName: 'r', env: { RUNNER_TOKEN: 'registration-token' } };
    const { worker, pod } = await startWorker(
      { stateDir: harness.stateDir, request, registration },
      { env: { HOLDFAST_TEST_WORKER_SECRET: 'worker-secret' } },
    );
    await harness.makeRunning(pod);
    await kill(worker, worker.pid!);
    const output = await harness.output(pod);
    expect(output).toContain('PLAIN=yes');
    // Holdfast's entry replaces the user's of the same name.
    expect(output).toContain('RUNNER_TOKEN=registration-token');
    expect(output).not.toContain('from the spec');
    expect(output).not.toContain('worker-secret');
    await untilSeen(
      'the secret file is gone',
      () => readdir(join(harness.stateDir, 'pods', pod.name)),
      (files) => !files.includes('registration.env.json'),
    );
    for (const entry of await readdir(harness.stateDir, { recursive: true })) {
      const mode = await modeOf(join(harness.stateDir, entry));
      expect({ entry, forOthers: mode & 0o077 }).toEqual({ entry, forOthers: 0 });
    }
  });
});

/** Returns the permissions of a file, or 0 if it was removed after it was listed. */
async function modeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).mode;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return 0;
  }
}

function canSignal(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function wrappersOf(name: string): Promise<string[]> {
  const ps = spawn('ps', ['-eo', 'pid=,args='], { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  for await (const chunk of ps.stdout!) output += String(chunk);
  return output.split('\n').filter((line) => line.includes('wrapper.ts') && line.includes(name));
}
