/** The uploader and a bucket, as the step's pod has them: what a store may do to it, and what it takes of the machine. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { bundleUploader } from '../../deploy/images/supervisorFolder.ts';
import { freePort } from '../../tools/lab/ports.ts';
import { createBucket, type TestBucket } from '../support/buckets.ts';
import { describeWithLab } from '../support/lab.ts';
import { TcpGate } from '../support/tcpGate.ts';
import { until } from '../support/until.ts';

const MIB = 1024 ** 2;
const root = mkdtempSync(join(tmpdir(), 'hf-uploader-'));
const program = join(root, 'uploader.mjs');
await bundleUploader(program);
afterAll(() => rmSync(root, { recursive: true }));

await describeWithLab('the uploader and a bucket', { s3: true }, ({ s3 }) => {
  let bucket: TestBucket;
  beforeAll(async () => {
    bucket = await createBucket(s3!);
  });

  /** Of a step that has ended: nobody has its port. */
  async function ended(to: string, endpoint = s3!.endpoint) {
    const folder = mkdtempSync(join(root, 'step-'));
    const [records, artifacts, shared] = ['records', 'artifacts', 'shared'].map((name) =>
      join(folder, name),
    ) as [string, string, string];
    for (const each of [records, artifacts, shared]) mkdirSync(each);
    for (const [name, text] of Object.entries({
      'started.json': '{}',
      'finished.json': '{"exitCode":0}',
      'build-log.txt': 'done\n',
    }))
      writeFileSync(join(records, name), text);
    const env = {
      ARTIFACT_DIR: artifacts, SHARED_DIR: shared, HOLDFAST_UPLOAD_RECORDS: records, HOLDFAST_PROBE_PORT: String(await freePort()),
      HOLDFAST_UPLOAD_TO: `${to}/`, HOLDFAST_UPLOAD_SHARED_KEY: `shared/${to}.json`, HOLDFAST_UPLOAD_TIMEOUT: '60s',
      HOLDFAST_UPLOAD_BUCKET: bucket.name, HOLDFAST_UPLOAD_ENDPOINT: endpoint, HOLDFAST_UPLOAD_REGION: 'us-east-1', HOLDFAST_UPLOAD_PATH_STYLE: 'true', ...bucket.env,
    }; // prettier-ignore
    return { artifacts, env };
  }

  function start(env: Readonly<Record<string, string>>): {
    child: ChildProcess;
    end: Promise<{ code: number | null; line: unknown }>;
  } {
    const child = spawn(process.execPath, [program], { env, stdio: ['ignore', 'pipe', 'inherit'] });
    let text = '';
    child.stdout.on('data', (bytes: Buffer) => (text += bytes.toString()));
    return {
      child,
      end: once(child, 'close').then(() => ({
        code: child.exitCode,
        line: text === '' ? undefined : (JSON.parse(text) as unknown),
      })),
    };
  }

  test("many large concurrent files need much less than the container's 512 MiB", async () => {
    const { artifacts, env } = await ended('large');
    for (let index = 0; index < 8; index++)
      writeFileSync(join(artifacts, `dump-${index}`), Buffer.alloc(40 * MIB, index));
    const { child, end } = start(env);
    let most = 0;
    const peak = (): number =>
      Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1] ?? 0) /
      1024;
    const looking = setInterval(() => {
      try {
        most = Math.max(most, peak());
      } catch {
        clearInterval(looking); // it has ended
      }
    }, 20);
    expect(await end).toEqual({ code: 0, line: { end: 'stored', skippedFiles: [] } });
    clearInterval(looking);
    expect(most).toBeGreaterThan(50);
    expect(most).toBeLessThan(420);
    expect(
      Object.entries(bucket.texts('large')).map(([path, text]) => `${path} ${text.length}`),
    ).toContain(`artifacts/dump-7 ${40 * MIB}`);
  });

  test('after an outage of the server everything is stored', async () => {
    const gate = await TcpGate.to(s3!.endpoint);
    const refusing = createServer((socket) => socket.destroy()).listen(gate.port, gate.host);
    await once(refusing, 'listening');
    const { env } = await ended('back', gate.url);
    const { end } = start(env);
    await once(refusing, 'connection');
    refusing.close();
    await once(refusing, 'close');
    await gate.open();
    expect(await end).toEqual({ code: 0, line: { end: 'stored', skippedFiles: [] } });
    expect(Object.keys(bucket.texts('back')).toSorted()).toEqual([
      'build-log.txt',
      'finished.json',
      'started.json',
    ]);
    await gate.shut();
  });

  test('if the server stays unreachable, it gives up after its timeout with the reason', async () => {
    const gate = await TcpGate.to(s3!.endpoint);
    const { env } = await ended('away', gate.url);
    const { end } = start({ ...env, HOLDFAST_UPLOAD_TIMEOUT: '20s' });
    expect(await end).toEqual({
      code: 1,
      line: {
        error: expect.stringMatching(
          /not stored within 20s: Error: Could not put shared\/away\.json into the bucket \S+: .*ECONNREFUSED/,
        ),
      },
    });
  });

  test('killed during an upload: no incomplete artifact looks complete', async () => {
    const gate = await TcpGate.to(s3!.endpoint);
    const { artifacts, env } = await ended('killed', gate.url);
    writeFileSync(join(artifacts, 'dump'), Buffer.alloc(400 * MIB, 'x'));
    gate.holdAfter(200 * MIB);
    await gate.open();
    const { child, end } = start(env);
    await until('its first part', () => bucket.parts().length > 0);
    child.kill('SIGKILL');
    await end;
    await gate.shut();
    expect(Object.keys(bucket.texts('killed'))).toEqual(['build-log.txt']);
  });
});
