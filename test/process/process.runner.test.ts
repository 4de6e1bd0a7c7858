import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createProcessCompute } from '../../activities/compute/process/processCompute.ts';
import { startProcessHarness, type ProcessHarness } from '../support/processHarness.ts';
import { untilSeen } from '../support/until.ts';
import type { PodRequest, PodView } from '../../core/domain/pod.ts';

let harness: ProcessHarness;

beforeEach(async () => {
  harness = await startProcessHarness();
});

afterEach(async () => {
  await harness.close();
});

const request = (more: Partial<PodRequest>): PodRequest => ({
  ...harness.request(harness.newIdentity()),
  ...more,
});
const outside = (file: string): string => join(harness.stateDir, '..', file);
const contentOf = (file: string): Promise<string> =>
  untilSeen(
    `${file} is written`,
    () => readFile(file, 'utf8').catch(() => ''),
    (text) => text.endsWith('\n'),
  );

async function runToEnd(pod: PodRequest): Promise<PodView> {
  const { name } = await harness.compute.createPod(pod, undefined);
  return (await untilSeen(
    'ended',
    () => harness.compute.getPod({ name }),
    (view) => view?.ended === true,
  ))!;
}

describe('how a runner ends', () => {
  test('a missing command: 127, and the message names it', async () => {
    const view = await runToEnd(request({ command: ['/no/such/runner', 'x'] }));
    expect(view.exit).toMatchObject({ code: 127, message: 'cannot start /no/such/runner: ENOENT' });
    expect(view).not.toHaveProperty('startedAt');
  });

  test.each([
    ['is not executable', '', 'EACCES'],
    ['lies below a file', '/runner', 'ENOTDIR'],
  ])('a command that %s: 126', async (_what, below, code) => {
    await writeFile(outside('program'), 'echo', { mode: 0o600 });
    const command = outside(`program${below}`);
    expect((await runToEnd(request({ command: [command] }))).exit).toMatchObject({
      code: 126,
      message: `cannot start ${command}: ${code}`,
    });
  });

  test.each([
    ['TERM', 143],
    ['KILL', 137],
    ['INT', 130],
  ])('signal %s: %i', async (signal, code) => {
    const view = await runToEnd(
      request({ command: ['sh', '-c', `kill -${signal} $$; sleep 600`] }),
    );
    expect(view.exit).toMatchObject({ code, message: `ended by SIG${signal}` });
  });
});

describe('environment of a runner', () => {
  test('its arguments, an empty working directory, no standard input, and a log of both outputs', async () => {
    const pod = request({
      command: [
        'sh',
        '-c',
        'echo "args: $1,$2"; pwd; ls -A | wc -l; cat; echo oops >&2; touch here',
        'runner',
      ],
      args: ['a b', '*'],
    });
    const view = await runToEnd(pod);
    const work = join(harness.stateDir, 'pods', view.name, 'work');
    const [args, folder, files, error] = (await harness.output(view))
      .split('\n')
      .map((line) => line.trim());
    expect([args, folder, files, error]).toEqual(['args: a b,*', work, '0', 'oops']);
    expect(existsSync(join(work, 'here'))).toBe(true);
  });

  test("the worker's command if the request has none, with the request's arguments", async () => {
    const compute = createProcessCompute({
      stateDir: harness.stateDir,
      anyCommand: true,
      command: ['echo', 'default'],
    });
    const { command: _none, ...bare } = request({ args: ['more'] });
    const pod = await compute.createPod(bare, undefined);
    const view = await untilSeen(
      'ended',
      () => compute.getPod(pod),
      (seen) => seen?.ended === true,
    );
    expect(await harness.output(view!)).toBe('default more\n');
  });
});

describe('an invalid request is rejected and leaves nothing', () => {
  test.each<[string, Partial<PodRequest>, string]>([
    ['no command', { command: [] }, 'HOLDFAST_RUNNER_COMMAND'],
    ['an empty command', { command: [''] }, 'HOLDFAST_RUNNER_COMMAND'],
    ['a NUL in an argument', { command: ['echo'], args: ['a\0b'] }, '`args`'],
    ['a NUL in a value', { env: { SECRET: 'hush\0' } }, 'SECRET'],
    ['a name with =', { env: { 'A=B': 'x' } }, '"A=B"'],
  ])('%s', async (_what, wrong, named) => {
    const failure: unknown = await harness.compute
      .createPod(request(wrong), undefined)
      .catch((error: unknown) => error);
    expect(failure).toMatchObject({
      name: 'ComputeError',
      kind: 'invalid',
      message: expect.stringContaining(named),
    });
    expect((failure as Error).message).not.toContain('hush');
    expect(await harness.compute.list()).toEqual([]);
  });

  test('an unusable state directory: each call reports the reason', async () => {
    await writeFile(outside('file'), '');
    const compute = createProcessCompute({ stateDir: outside('file/state'), anyCommand: true });
    const failure = {
      name: 'ComputeError',
      kind: 'unavailable',
      message: expect.stringContaining(outside('file/state')),
    };
    await expect(compute.createPod(request({}), undefined)).rejects.toMatchObject(failure);
    await expect(compute.list()).rejects.toMatchObject(failure);
    await expect(
      compute.watch({ changed: () => undefined, relisted: () => undefined }),
    ).rejects.toMatchObject(failure);
  });
});

describe('deletion', () => {
  test('SIGTERM reaches the whole group once, even if it is repeated; a shorter grace period replaces the first one', async () => {
    const notes = outside('notes');
    const script =
      'trap "echo parent >> $NOTES" TERM; sh -c \'trap "echo child >> $NOTES" TERM; echo ready >> $NOTES; while :; do sleep 0.02; done\' & while :; do sleep 0.02; done';
    const pod = await harness.compute.createPod(
      request({ command: ['sh', '-c', script], env: { NOTES: notes } }),
      undefined,
    );
    const watch = await harness.watch(harness.second);
    expect(await contentOf(notes)).toBe('ready\n');

    expect(await harness.compute.deletePod(pod, { gracePeriodSeconds: 600 })).toBe('terminating');
    await untilSeen(
      'both got it',
      () => readFile(notes, 'utf8'),
      (text) => text.includes('parent') && text.includes('child'),
    );
    expect(await harness.second.deletePod(pod, { gracePeriodSeconds: 900 })).toBe('terminating');
    expect(await harness.second.deletePod(pod, { gracePeriodSeconds: 1 })).toBe('terminating');
    const { pod: ended } = await watch.until(
      'ended',
      (event) => event.pod.ended && !event.pod.deleted,
    );
    expect(ended.exit).toMatchObject({ code: 137 });
    await watch.until('gone', (event) => event.pod.deleted);
    await watch.stop();
    expect((await readFile(notes, 'utf8')).trim().split('\n').toSorted()).toEqual([
      'child',
      'parent',
      'ready',
    ]);
  });

  test('a runner that exits with its own code after SIGTERM: the watch reports it before the pod is deleted', async () => {
    const pod = await harness.compute.createPod(harness.request(harness.newIdentity()), undefined);
    await harness.makeRunning(pod);
    const watch = await harness.watch();
    await harness.compute.deletePod(pod);
    const { pod: gone } = await watch.until('gone', (event) => event.pod.deleted);
    expect(gone).toMatchObject({ terminating: true, exit: { code: 143 } });
  });

  test('forty pods created, stopped and removed concurrently leave nothing', async () => {
    const watch = await harness.watch(harness.second);
    const pods = await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        (i % 2 ? harness.compute : harness.second).createPod(
          request({ command: ['sh', '-c', 'exec sleep 600'] }),
          undefined,
        ),
      ),
    );
    await Promise.all(
      pods.map((pod, i) => harness.compute.deletePod(pod, { gracePeriodSeconds: i % 3 ? 5 : 0 })),
    );
    await untilSeen(
      'all are gone',
      () => harness.compute.list(),
      (left) => left.length === 0,
      100_000,
    );
    // Some went before the watch had looked. Of the others, it tells each end, and once.
    const ends = (pod: PodView): number =>
      watch.of(pod).filter((event) => event.pod.deleted).length;
    await untilSeen(
      'the watch has told all ends',
      async () => pods.filter((pod) => watch.of(pod).length > 0 && ends(pod) === 0),
      (left) => left.length === 0,
    );
    await watch.stop();
    expect(pods.some((pod) => ends(pod) === 1)).toBe(true);
    // One that it saw only now may end after it was stopped.
    expect(pods.filter((pod) => ends(pod) > 1)).toEqual([]);
  });
});
