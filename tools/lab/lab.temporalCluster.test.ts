import { afterAll, expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { access, chmod, mkdtemp, readdir, readlink, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { down, kill, start, status, up } from './lab.ts';
import { resolveBinary } from './resolve.ts';
import { describeIf } from '../../test/support/lab.ts';
import { PROJECT, pages } from '../../test/support/markdown.ts';
import { expectNothingLeft, memoryWorld } from '../../test/support/memoryWorld.ts';

const [PAGE] = pages().filter(({ path }) => path === 'docs/scale.md');

/** A lab of its own: its parts are killed here. */
const stateDir = await mkdtemp(join(tmpdir(), 'hf-cluster-'));
await chmod(stateDir, 0o755); // PostgreSQL does not run as root
const prepare = async () => {
  return await up({
    stateDir,
    temporal: 'cluster',
    kubernetes: false,
    progress: (line) => process.stderr.write(`[cluster] ${line}\n`),
  });
};

/** Processes that work in the database's folder. */
async function databaseProcesses(): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const folders = await Promise.all(
    pids.map(async (pid) => [pid, await readlink(`/proc/${pid}/cwd`).catch(() => '')] as const),
  );
  return folders.filter(([, folder]) => folder === join(stateDir, 'postgres')).map(([pid]) => pid);
}

await describeIf('Temporal as a cluster on PostgreSQL', prepare, { temporal: true }, (lab) => {
  afterAll(async () => {
    await down({ stateDir, purge: true });
    await rm(stateDir, { recursive: true, force: true });
  });

  test('each of its services is a process', async () => {
    const { components } = await status({ stateDir });
    expect(Object.entries(components).map(([name, { state }]) => [name, state])).toEqual(
      [
        'postgres',
        'temporal-matching',
        'temporal-frontend',
        'temporal-history',
        'temporal-worker',
      ].map((name) => [name, 'healthy']),
    );
    expect(new Set(Object.values(components).map(({ pid }) => pid)).size).toBe(5);
  });

  test('a life goes on after the deaths of the histories, the database and the front end', async () => {
    const { compute, ci, world } = await memoryWorld(lab);
    try {
      const run = await world.start();
      const pod = await run.pod();
      compute.start(pod);
      const { runnerName } = await run.reaches('Idle', (seen) => seen.phase === 'Idle');
      for (const name of ['temporal-history', 'postgres', 'temporal-frontend'] as const) {
        await kill(stateDir, name);
        expect((await status({ stateDir })).components[name]?.state).toBe('down');
        await start(stateDir, name);
      }
      ci.forget(runnerName);
      compute.change(pod, {
        ended: true,
        exit: { code: 0, oomKilled: false, record: { job: 'completed' } },
      });
      expect(await run.result()).toMatchObject({ outcome: 'succeeded', replacements: [] });
      expectNothingLeft({ compute, ci });
    } finally {
      await world.close();
    }
  });

  test('the dynamic config that the documentation gives is one that the server knows, as are those that run here and with Docker Compose', async () => {
    const settings = (PAGE?.blocks ?? [])
      .filter(({ language }) => language === 'yaml')
      .map(({ text }) => text);
    expect(settings).toHaveLength(1);
    const documented = join(stateDir, 'documented.yaml');
    await writeFile(documented, settings.join('\n'));
    const files = [
      documented,
      join(stateDir, 'temporal-cluster', 'dynamic.yaml'),
      join(PROJECT, 'deploy/compose/dynamic-config.yaml'),
    ];
    const { stdout } = await promisify(execFile)(await resolveBinary('temporal-server'), [
      'validate-dynamic-config',
      ...files,
    ]);
    expect(stdout.trim().split('\n')).toEqual(files); // each followed by its errors and warnings
  });

  test('the dev server is not put beside it', async () => {
    await expect(up({ stateDir, temporal: 'dev', kubernetes: false })).rejects.toThrow(
      'this lab has Temporal as cluster: run `lab down` first',
    );
    expect((await up({ stateDir, temporal: true, kubernetes: false })).temporal).toEqual(
      lab.temporal,
    );
  });

  test('down leaves no process, and --purge no data', async () => {
    expect(await databaseProcesses()).not.toEqual([]);
    await down({ stateDir, purge: true });
    expect((await status({ stateDir })).components).toEqual({});
    expect(await databaseProcesses()).toEqual([]);
    await expect(access(join(stateDir, 'postgres'))).rejects.toThrow('ENOENT');
    await expect(access(join(stateDir, 'temporal-cluster'))).rejects.toThrow('ENOENT');
  });
});
