import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Connection, WorkflowClient } from '@temporalio/client';
import { down, kill, restart, start, status, up } from './lab.ts';
import { isAlive } from './process.ts';
import { readProcess } from './store.ts';

/** A lab of its own: it is stopped and restarted here. */
describe('lab with Temporal only', () => {
  let stateDir: string;
  beforeAll(async () => {
    stateDir = await mkdtemp(join(tmpdir(), 'hf-lab-'));
  });
  afterAll(async () => {
    await down({ stateDir, purge: true });
    await rm(stateDir, { recursive: true, force: true });
  });

  const options = (): { stateDir: string; kubernetes: false } => ({ stateDir, kubernetes: false });
  const withClient = async <T>(
    address: string,
    body: (client: WorkflowClient) => Promise<T>,
  ): Promise<T> => {
    const connection = await Connection.connect({ address });
    try {
      return await body(new WorkflowClient({ connection }));
    } finally {
      await connection.close();
    }
  };

  /** What it takes this machine, now, to start a server. */
  let startMs: number;

  test('concurrent ups start one server', async () => {
    const before = performance.now();
    const states = await Promise.all([up(options()), up(options()), up(options())]);
    startMs = performance.now() - before;
    expect(new Set(states.map(({ temporal }) => temporal?.address)).size).toBe(1);
    const { components } = await status({ stateDir });
    expect(components).toMatchObject({ temporal: { state: 'healthy' } });
    expect(Object.keys(components)).toEqual(['temporal']);
  });

  test('an up of what runs is quick and keeps the process', async () => {
    const before = await readProcess(stateDir, 'temporal');
    let quickest = Number.POSITIVE_INFINITY; // of some, since the machine may be busy
    for (let attempt = 0; attempt < 10; attempt++) {
      const started = performance.now();
      await up(options());
      quickest = Math.min(quickest, performance.now() - started);
    }
    expect(quickest).toBeLessThan(startMs / 5);
    expect(await readProcess(stateDir, 'temporal')).toEqual(before);
  });

  test('what another process is only just adding is none of ours', async () => {
    const file = join(stateDir, 'lab.json');
    const written = await readFile(file, 'utf8');
    await writeFile(
      file,
      JSON.stringify({ ...(JSON.parse(written) as object), kubernetes: true, s3: true }),
    );
    try {
      const state = await up(options());
      expect(state.temporal).toBeDefined();
      expect([state.kubernetes, state.s3]).toEqual([undefined, undefined]);
    } finally {
      await writeFile(file, written);
    }
  });

  test('the UI answers', async () => {
    const { temporal } = await up(options());
    const page = await fetch(temporal?.uiUrl ?? '');
    expect(page.status).toBe(200);
    expect(await page.text()).toMatch(/<html/i);
  });

  test('a database that lacks a search attribute, as an earlier Holdfast has left it, gets it', async () => {
    const address = (await up(options())).temporal?.address ?? '';
    const connection = await Connection.connect({ address });
    await connection.operatorService.removeSearchAttributes({
      namespace: 'default',
      searchAttributes: ['RunnerLocation'],
    });
    await connection.close();
    await restart(stateDir, 'temporal');
    const started = withClient(
      address,
      async (client) =>
        await client.start('nobody', {
          taskQueue: 'nobody',
          workflowId: 'placed',
          searchAttributes: { RunnerLocation: ['here'] },
        }),
    );
    await expect(started).resolves.toMatchObject({ workflowId: 'placed' });
  }, 90_000);

  test('workflows and search attributes survive a restart and a SIGKILL, at the same address', async () => {
    const address = (await up(options())).temporal?.address ?? '';
    await withClient(address, (client) =>
      client.start('nobody', {
        taskQueue: 'nobody',
        workflowId: 'survivor',
        searchAttributes: { RunnerPhase: ['Idle'] },
      }),
    );
    const before = await readProcess(stateDir, 'temporal');

    await restart(stateDir, 'temporal');
    expect(await isAlive(before!)).toBe(false);
    expect(
      (await withClient(address, (client) => client.getHandle('survivor').describe())).status.name,
    ).toBe('RUNNING');

    await kill(stateDir, 'temporal');
    expect((await status({ stateDir })).components.temporal?.state).toBe('down');
    await start(stateDir, 'temporal');
    expect(
      (await withClient(address, (client) => client.getHandle('survivor').describe()))
        .searchAttributes['RunnerPhase'],
    ).toEqual(['Idle']);
  });

  test('up starts again what died', async () => {
    await kill(stateDir, 'temporal');
    await up(options());
    expect((await status({ stateDir })).components.temporal?.state).toBe('healthy');
  });

  test('changing the port of a running server is refused', async () => {
    await expect(up({ ...options(), temporalPort: 1 })).rejects.toThrow(/lab down/);
  });

  test('down leaves no process, and may be repeated', async () => {
    const identity = await readProcess(stateDir, 'temporal');
    await down({ stateDir });
    expect(await isAlive(identity!)).toBe(false);
    expect((await status({ stateDir })).components).toEqual({});
    await down({ stateDir });
  });

  test('data outlives down, but not down --purge', async () => {
    const { temporal } = await up(options());
    await withClient(temporal?.address ?? '', (client) => client.getHandle('survivor').describe());
    await down({ stateDir, purge: true });
    const again = await up(options());
    await expect(
      withClient(again.temporal?.address ?? '', (client) =>
        client.getHandle('survivor').describe(),
      ),
    ).rejects.toThrow(/not found/i);
  });
});
