/** The logs of runners that are local processes, as the command reads them. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { linesOf, RunnerPodLogs } from '../../cli/runner/podLogs.ts';
import type { PodRequest, PodView, RunnerIdentity } from '../../core/domain/pod.ts';
import { startProcessHarness, type ProcessHarness } from '../support/processHarness.ts';
import { until, untilSeen } from '../support/until.ts';

let harness: ProcessHarness;
let identity: RunnerIdentity;
let lines: string[];
let ended: AbortController;
let left: AbortController;
const write = (line: string): void => void lines.push(line);

beforeEach(async () => {
  harness = await startProcessHarness();
  identity = harness.newIdentity();
  lines = [];
  ended = new AbortController();
  left = new AbortController();
});
afterEach(async () => {
  ended.abort();
  left.abort();
  await harness.close();
});

const request = (script: string, attempt = 1): PodRequest => {
  const { command: _runner, ...rest } = harness.request({ ...identity, attempt });
  return { ...rest, command: ['sh', '-c', script] };
};
const start = async (script: string, attempt?: number): Promise<PodView> =>
  await harness.compute.createPod(request(script, attempt), undefined);
const open = async (
  workflowId = identity.workflowId,
  env: Record<string, string> = {},
): Promise<RunnerPodLogs> =>
  await RunnerPodLogs.open(
    { HOLDFAST_STATE_DIR: harness.stateDir, ...env },
    { ...identity, workflowId, place: 'process/machine/holdfast' },
  );
async function toEnd(pod: PodView): Promise<void> {
  await untilSeen(
    'ended',
    () => harness.compute.getPod(pod),
    (view) => view?.ended === true,
  );
}
const how = () => ({ signal: left.signal, ended: ended.signal });

test.each<[what: string, tailLines: number | undefined, expected: string[]]>([
  ['all of it', undefined, ['1', '2', '', '4']],
  ['more lines than it has', 9, ['1', '2', '', '4']],
  ['its last two lines', 2, ['', '4']],
  ['its last line', 1, ['4']],
])('of a pod that has ended: %s', async (_what, tailLines, expected) => {
  await toEnd(await start(String.raw`printf '1\n2\n\n4\n'`));
  const tail = tailLines === undefined ? {} : { tailLines };
  expect(await (await open()).print(1, write, { signal: left.signal, ...tail })).toBe(true);
  expect(lines).toEqual(expected);
});

test('a log without a final newline that is longer than a chunk', async () => {
  await toEnd(
    await start(
      `i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo "a line of some fifty characters, number $i"; done; printf end`,
    ),
  );
  await (await open()).print(1, write, { signal: left.signal, tailLines: 2_500 });
  expect(lines).toHaveLength(2_500);
  expect([lines[0], lines.at(-1)]).toEqual(['a line of some fifty characters, number 502', 'end']);
});

test('followed: later output, until the end of the pod, which is deleted in the meantime', async () => {
  const following = (await open()).follow(1, write, how());
  const go = join(harness.stateDir, 'go');
  const pod = await start(
    `trap 'echo stopping; exit 0' TERM; echo one; while [ ! -e ${go} ]; do sleep 0.02; done; echo two; while :; do sleep 0.02; done`,
  );
  await until('the first line', () => lines.includes('one'));
  await writeFile(go, '');
  await until('the second line', () => lines.includes('two'));
  await harness.compute.deletePod(pod);
  await until('the last line', () => lines.includes('stopping'));
  ended.abort();
  expect(await following).toBe(true);
  // The shell itself says what became of its last command.
  expect(lines.filter((line) => line !== 'Terminated')).toEqual(['one', 'two', 'stopping']);
});

test('followed: replacement pods, even if a predecessor was missed', async () => {
  const following = (await open()).follow(1, write, how());
  await start('echo first');
  await until('the first', () => lines.includes('first'));
  await start('echo second', 2);
  await until('the second', () => lines.includes('second'));
  await start('echo fourth', 4);
  await until('the fourth', () => lines.includes('fourth'));
  ended.abort();
  expect(await following).toBe(true);
});

test('a missing pod, or one of another workflow: nothing is read', async () => {
  await toEnd(await start('echo secret'));
  ended.abort();
  expect(await (await open()).print(2, write, { signal: left.signal })).toBe(false);
  const other = await open(`${identity.workflowId}-other`);
  expect(await other.follow(1, write, how())).toBe(false);
  expect(lines).toEqual([]);
});

test('the stored log of a worker, by the name of the pod', async () => {
  const folder = join(harness.stateDir, 'kept');
  await mkdir(folder, { recursive: true });
  const logs = await open(undefined, { HOLDFAST_POD_LOGS: folder });
  expect(await logs.readKept(1)).toBeUndefined();
  await writeFile(join(folder, `${logs.podName(1)}.log`), 'last words\n');
  expect(await logs.readKept(1)).toBe('last words\n');
  expect(await (await open()).readKept(1)).toBeUndefined();
  await mkdir(join(folder, `${logs.podName(2)}.log`));
  await expect(logs.readKept(2)).rejects.toMatchObject({ code: 'failed' });
});

test('a character that is split between two chunks is kept', async () => {
  async function* chunks(): AsyncGenerator<Uint8Array> {
    for (const byte of Buffer.from('né\nü')) yield Buffer.from([byte]);
  }
  for await (const line of linesOf(chunks())) lines.push(line);
  expect(lines).toEqual(['né', 'ü']);
});
