/** Where the last lines of a runner are found that did not succeed: with the worker, and never in Temporal. */
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import { CliProcess, runCli } from '../support/cli.ts';
import { ClusterWorld } from '../support/clusterWorld.ts';
import { CommandRun } from '../support/commandRun.ts';
import { describeWithLab } from '../support/lab.ts';
import { readable } from '../support/secretSearch.ts';
import { TcpGate } from '../support/tcpGate.ts';
import { together, type Scenario } from '../support/together.ts';
import { until } from '../support/until.ts';

/** Put together by the shell, so that the input, which is in the history, does not have it. */
const WORDS = 'echo "last $((6 * 7)) words"; sleep 1';
const LAST = 'last 42 words';

interface Kept {
  readonly world: ClusterWorld;
  close(): Promise<void>;
}

async function openWith(
  lab: Parameters<typeof ClusterWorld.open>[0],
  podLogs: string,
): Promise<Kept> {
  const world = await ClusterWorld.open(lab, {
    webhook: false,
    settings: { HOLDFAST_POD_LOGS: podLogs, HOLDFAST_POD_LOG_MAX_BYTES: '4096' },
  });
  return { world, close: async () => await world.close() };
}

const tailsOf = ({ world }: Kept, { run }: CommandRun) =>
  world.worker.log.filter(
    (line) =>
      line.msg.includes('the last lines of a runner that did not succeed') &&
      line['workflowId'] === run.handle.workflowId,
  );
/** The worker's log comes through a pipe, and may come after the verdict. */
async function seenTailsOf(kept: Kept, life: CommandRun): Promise<ReturnType<typeof tailsOf>> {
  await until('its last lines to be logged', () => tailsOf(kept, life).length > 0);
  return tailsOf(kept, life);
}

async function expectNotInTemporal({ world }: Kept): Promise<void> {
  let histories = 0;
  for await (const { workflowId, runId } of world.client.workflow.list({
    query: `TaskQueue = '${world.taskQueue}'`,
  })) {
    const handle = world.client.workflow.getHandle(workflowId, runId);
    expect(readable(await handle.fetchHistory())).not.toContain(LAST);
    expect(readable((await handle.describe()).raw)).not.toContain(LAST);
    histories++;
  }
  expect(histories).toBeGreaterThan(0);
}

const toLog: Record<string, Scenario<Kept>> = {
  "failed: its last lines are in the worker's log": async (kept) => {
    const life = await CommandRun.start(kept.world, 'failed', `${WORDS}; exit 3`);
    expect(await life.ends()).toMatchObject({ outcome: 'failed', exitCode: 3 });
    expect(await seenTailsOf(kept, life)).toEqual([
      expect.objectContaining({ tail: expect.stringContaining(LAST) }),
    ]);
  },
  'cancelled: in the log, too': async (kept) => {
    const life = await CommandRun.start(
      kept.world,
      'cancelled',
      `${WORDS}; echo up; exec sleep 77`,
    );
    await (await life.running()).log.says('up');
    await life.run.handle.signal('cancel', 'enough');
    expect(await life.ends()).toMatchObject({ outcome: 'aborted', cause: 'cancelled' });
    // Before it is stopped, since its log may go with it; and once more if the log is still there.
    for (const line of await seenTailsOf(kept, life))
      expect(line).toMatchObject({ tail: expect.stringContaining(LAST) });
  },
  'while it runs: the command reads it from the cluster, and follows it to its end': async (
    kept,
  ) => {
    const { settings, kubeconfig } = kept.world;
    const env = {
      TEMPORAL_ADDRESS: settings['TEMPORAL_ADDRESS'] ?? '',
      HOLDFAST_KUBECONFIG: kubeconfig,
    };
    const life = await CommandRun.start(
      kept.world,
      'printing',
      `echo first; ${WORDS}; trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.1; done`,
    );
    const id = life.run.handle.workflowId;
    const following = new CliProcess(['runner', 'logs', id, '--follow'], env);
    await following.prints(/^up$/m);
    expect(await runCli(['runner', 'logs', id, '--tail', '2'], env)).toEqual({
      status: 0,
      stdout: `${LAST}\nup\n`,
      stderr: '',
    });
    await life.run.handle.signal('cancel', 'enough');
    await life.ends();
    expect(await following.exited).toMatchObject({ code: 0 });
    // The supervisor and the shell say their part, too.
    const lines = following.stdout.split('\n');
    expect(lines.filter((line) => /^(first|up|bye|last .*)$/.test(line))).toEqual([
      'first',
      LAST,
      'up',
      'bye',
    ]);
    // The pod is deleted, and its last lines are in the worker's log only.
    expect(await runCli(['runner', 'logs', id], env)).toMatchObject({
      status: 3,
      stderr: expect.stringContaining('HOLDFAST_POD_LOGS'),
    });
  },
  'a follower whose connections are cut continues where it was': async ({ world }) => {
    const config = await readFile(world.kubeconfig, 'utf8');
    const server = /server: (\S+)/.exec(config)?.[1] ?? '';
    const gate = await TcpGate.to(server);
    const folder = await mkdtemp(join(tmpdir(), 'hf-follow-'));
    const through = join(folder, 'kubeconfig');
    await writeFile(through, config.replace(server, gate.url), { mode: 0o600 });
    await gate.open();
    try {
      const life = await CommandRun.start(
        world,
        'cut',
        `trap 'echo bye; exit 3' TERM; n=0; while :; do echo "line $((n += 1))"; sleep 0.1; done`,
      );
      const following = new CliProcess(['runner', 'logs', life.run.handle.workflowId, '--follow'], {
        TEMPORAL_ADDRESS: world.settings['TEMPORAL_ADDRESS'] ?? '',
        HOLDFAST_KUBECONFIG: through,
      });
      await following.prints(/^line 5$/m);
      await gate.shut();
      await gate.open();
      const seen = following.stdout.match(/^line \d+$/gm)?.length ?? 0;
      await following.prints(new RegExp(`^line ${seen + 20}$`, 'm'));
      await life.run.handle.signal('cancel', 'enough');
      await life.ends();
      expect(await following.exited).toMatchObject({ code: 0 });
      const numbers = (following.stdout.match(/^line \d+$/gm) ?? []).map((each) =>
        Number(each.slice('line '.length)),
      );
      expect(numbers).toEqual(numbers.map((_each, index) => index + 1));
      expect(following.stdout).toContain('bye\n');
    } finally {
      await gate.shut();
      await rm(folder, { recursive: true });
    }
  },
  'succeeded: nothing is kept': async (kept) => {
    const life = await CommandRun.start(kept.world, 'succeeded', WORDS);
    expect(await life.ends()).toMatchObject({ outcome: 'succeeded' });
    expect(tailsOf(kept, life)).toEqual([]);
  },
};

await describeWithLab(
  "last lines in the worker's log",
  { temporal: true, nodes: 'kubelet' },
  (lab) => {
    together(async () => await openWith(lab, 'log'), toLog, {
      afterwards: { 'and in no history': expectNotInTemporal },
    });
  },
);

await describeWithLab('last lines in a folder', { temporal: true, nodes: 'kubelet' }, (lab) => {
  let folder = '';
  together(
    async () => {
      folder = join(await mkdtemp(join(tmpdir(), 'hf-logs-')), 'kept');
      return await openWith(lab, folder);
    },
    {
      'failed: a file of its own, for its owner only, cut to the last bytes': async ({ world }) => {
        const life = await CommandRun.start(
          world,
          'failed',
          `i=0; while [ $i -lt 400 ]; do i=$((i+1)); echo "a line among many, number $i"; done; ${WORDS}; exit 3`,
        );
        const { pod } = await life.run.reaches('a pod', (status) => status.pod !== undefined);
        expect(await life.ends()).toMatchObject({ outcome: 'failed' });
        expect(await readdir(folder)).toEqual([`${pod}.log`]);
        const path = join(folder, `${pod}.log`);
        const text = await readFile(path, 'utf8');
        expect(text).toContain(LAST);
        expect(text).toContain('number 400\n');
        expect(text).not.toContain('number 100\n');
        expect(Buffer.byteLength(text)).toBeLessThanOrEqual(4_096);
        expect((await stat(path)).mode & 0o777).toBe(0o600);
        expect(JSON.stringify(world.worker.log)).not.toContain(LAST);
        const printed = await runCli(['runner', 'logs', life.run.handle.workflowId, '--json'], {
          TEMPORAL_ADDRESS: world.settings['TEMPORAL_ADDRESS'] ?? '',
          HOLDFAST_KUBECONFIG: world.kubeconfig,
          HOLDFAST_POD_LOGS: folder,
        });
        expect(JSON.parse(printed.stdout)).toMatchObject({
          pod,
          kept: true,
          log: text.trimEnd().split('\n'),
        });
        await rm(join(folder, '..'), { recursive: true });
      },
    },
    { afterwards: { 'and in no history': expectNotInTemporal } },
  );
});
