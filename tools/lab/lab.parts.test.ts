import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { librariesOf } from '../../deploy/images/sharedLibraries.ts';
import { mountsBelow } from './cleanUp.ts';
import { COMPONENTS, componentsOf } from './components/index.ts';
import { checksumOf, fillPlatform } from './download.ts';
import { withLock } from './lock.ts';
import { TEMPORAL_SERVERS } from './lab.ts';
import { canListen, freePort } from './ports.ts';
import { CNI_PACKAGE, installCommand, missingPrograms, NODE_PROGRAMS } from './nodeRequirements.ts';
import { isAlive, processStartTime, startDetached, stopProcess } from './process.ts';
import { newRecord, readRecord, writeRecord } from './store.ts';
import { BINARIES } from './versions.ts';
import { isRequired } from '../../test/support/labNeeds.ts';
import { until } from '../../test/support/until.ts';

const SUM = 'a'.repeat(64);

describe('checksums', () => {
  test.each([
    ['alone', SUM, 'thing', SUM],
    ['in a list', `${'b'.repeat(64)}  other\n${SUM}  thing\n`, 'thing', SUM],
    ['in a list of binary files', `${SUM} *thing\n`, 'thing', SUM],
    ['in a list with folders', `${SUM}  ./dist/thing\n`, 'thing', SUM],
    ['in capitals', `${SUM.toUpperCase()}  thing`, 'thing', SUM],
    ['of another file only', `${SUM}  other\n`, 'thing', undefined],
    ['an error page', '<html>Not Found</html>', 'thing', undefined],
  ])('%s', (_, list, file, expected) => {
    expect(checksumOf(list, file)).toBe(expected);
  });
});

test('the platform in a URL has the names that Go gives it', () => {
  expect(fillPlatform('${os}/${arch}/${os}', 'linux', 'x64')).toBe('linux/amd64/linux');
  expect(fillPlatform('${os}/${arch}', 'darwin', 'arm64')).toBe('darwin/arm64');
});

test('every download is pinned to the version, and checked unless the project publishes no checksums', () => {
  for (const [name, spec] of Object.entries(BINARIES)) {
    const download = 'download' in spec ? spec.download : undefined;
    if (download === undefined) continue;
    expect(download.url).toContain(spec.version);
    expect([name, 'checksumUrl' in download]).toEqual([name, name !== 'kwok']);
  }
});

describe('libraries of a program', () => {
  test('those with a path', () => {
    const ldd =
      '\tlinux-vdso.so.1 (0x00007ffd)\n\tlibdl.so.2 => /lib/x86_64-linux-gnu/libdl.so.2 (0x00007f)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n';
    expect(librariesOf(ldd)).toEqual([
      '/lib/x86_64-linux-gnu/libdl.so.2',
      '/lib64/ld-linux-x86-64.so.2',
    ]);
  });
  test('none of a static program', () => expect(librariesOf('\tstatically linked\n')).toEqual([]));
  test('a missing one is an error', () =>
    expect(() => librariesOf('\tlibx.so.1 => not found\n')).toThrow('libx.so.1'));
});

test('the record of a lab that components write beside each other: all that they have noted stays', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'hf-record-'));
  const record = newRecord(dir);
  for (let round = 0; round < 50; round++) {
    await Promise.all(
      ['a', 'b', 'c', 'd'].map(async (name) => {
        record.ports[`${name}${round}`] = round;
        await writeRecord(dir, record);
      }),
    );
    expect(await readRecord(dir)).toEqual(record);
  }
  await rm(dir, { recursive: true });
});

test('mounts of a lab: the innermost first, blanks decoded, neighbours left alone', () => {
  const line = (point: string): string => `36 35 98:0 / ${point} rw,noatime - ext3 /dev/root rw`;
  const mountinfo = [
    line('/'),
    line('/lab'),
    line('/lab/a'),
    line('/lab/a/b\\040c'),
    line('/laboratory'),
    '',
  ].join('\n');
  expect(mountsBelow(mountinfo, ['/lab'])).toEqual(['/lab/a/b c', '/lab/a', '/lab']);
});

describe.each(TEMPORAL_SERVERS)('with Temporal as %s', (temporal) => {
  test.each(['none', 'kubelet', 'kwok'] as const)(
    'a component comes after those it needs (nodes: %s)',
    (nodes) => {
      const components = componentsOf({ temporal, kubernetes: true, nodes });
      const names = components.map(({ name }) => name);
      for (const component of components) {
        for (const needed of component.after) {
          expect(names).toContain(needed);
          expect(names.indexOf(needed)).toBeLessThan(names.indexOf(component.name));
        }
      }
    },
  );
});

test('processes of one program are told apart by an argument', () => {
  const ofOneProgram = Object.groupBy(Object.values(COMPONENTS), ({ binaries }) => binaries[0]);
  const shared = Object.values(ofOneProgram).filter((components) => components.length > 1);
  expect(shared.map((components) => components.map(({ name }) => name))).toEqual([
    ['temporal-matching', 'temporal-frontend', 'temporal-history', 'temporal-worker'],
  ]);
  for (const components of shared)
    expect(new Set(components.map(({ mark }) => mark ?? '')).size).toBe(components.length);
});

test.each([
  [undefined, false],
  ['', false],
  ['temporal', true],
  ['kwok', false],
  ['kwok, kubelet', true],
  ['kubernetes', true],
  ['all', true],
])('HOLDFAST_REQUIRE=%s demands a suite on Temporal and a kubelet: %s', (required, expected) => {
  expect(isRequired({ temporal: true, nodes: 'kubelet' }, required)).toBe(expected);
});

describe('on this machine', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'hf-parts-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  test('a lock admits one at a time, and tells those who wait', async () => {
    const path = join(folder, 'lock');
    let inside = 0;
    let most = 0;
    let waiting = 0;
    let release = (): void => undefined;
    const othersWait = new Promise<void>((resolve) => (release = resolve));
    const work = (): Promise<void> =>
      withLock(
        path,
        async () => {
          most = Math.max(most, ++inside);
          await othersWait; // the first holds it until the two others were turned away
          inside--;
        },
        () => {
          if (++waiting === 2) release();
        },
      );
    await Promise.all([work(), work(), work()]);
    expect({ most, inside, waiting }).toEqual({ most: 1, inside: 0, waiting: 2 });
  });

  test('a lock is free again when its holder was killed', async () => {
    const path = join(folder, 'lock');
    const script = `import { withLock } from ${JSON.stringify(join(process.cwd(), 'tools/lab/lock.ts'))}; await withLock(${JSON.stringify(path)}, () => { console.log('held'); setInterval(() => {}, 1000); return new Promise(() => {}); });`;
    const holder = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(holder.stdout, 'data');
    let waiting = false;
    const mine = withLock(
      path,
      async () => 'mine',
      () => {
        waiting = true;
        holder.kill('SIGKILL');
      },
    );
    expect(await mine).toBe('mine');
    expect(waiting).toBe(true);
  });

  test('a failing body releases the lock', async () => {
    const path = join(folder, 'lock');
    await expect(withLock(path, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(await withLock(path, async () => 'again')).toBe('again');
  });

  test('a process is known by its start time, and stopped for sure', async () => {
    const options = { log: join(folder, 'log'), cwd: folder, env: { PATH: process.env['PATH'] } };
    const identity = await startDetached(
      'sh',
      ['-c', "trap '' TERM; echo deaf; while :; do sleep 0.05; done"],
      options,
    );
    await until('the trap', async () =>
      (await readFile(options.log, 'utf8')).split('\n').includes('deaf'),
    );
    expect(await isAlive(identity)).toBe(true);
    expect(await isAlive({ ...identity, startTime: 'another' })).toBe(false);
    expect(await stopProcess({ ...identity, startTime: 'another' }, 'SIGKILL', 1_000)).toBe(true);
    expect(await isAlive(identity)).toBe(true); // not ours, not touched
    expect(await stopProcess(identity, 'SIGTERM', 200)).toBe(false); // it ignores SIGTERM
    expect(await processStartTime(identity.pid)).toBeUndefined();
  });

  test('a command that does not exist is an error', async () => {
    await expect(
      startDetached('/nowhere/thing', [], { log: join(folder, 'log'), cwd: folder, env: {} }),
    ).rejects.toThrow('ENOENT');
  });

  test('a port is free, and lies outside of what the kernel gives to clients', async () => {
    const port = await freePort();
    expect(await canListen(port)).toBe(true);
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const taken = (server.address() as AddressInfo).port;
    expect(await canListen(taken)).toBe(false);
    expect(port).toBeLessThan(taken);
    await new Promise((resolve) => server.close(resolve));
  });
});

describe('what a node needs', () => {
  test('all that is missing at once, and one command', async () => {
    const missing = await missingPrograms(
      async (program) => !['ip', 'openssl', 'ctr', 'containerd', 'tini'].includes(program),
      { HOLDFAST_TINI_BIN: '/opt/tini' },
    );
    expect(
      missing.filter(({ package: from }) => from !== CNI_PACKAGE).map(({ program }) => program),
    ).toEqual(['containerd', 'ctr', 'ip', 'openssl']);
    expect(installCommand(missing.filter(({ package: from }) => from !== CNI_PACKAGE))).toBe(
      'apt-get install containerd iproute2 openssl, or set HOLDFAST_CONTAINERD_BIN, HOLDFAST_CTR_BIN',
    );
  });

  test('CI and docs/testing.md install all of it', async () => {
    const packages = new Set([...NODE_PROGRAMS.map((each) => each.package), CNI_PACKAGE]);
    packages.delete('mount'); // essential
    for (const path of ['tools/ci/packages.sh', 'docs/testing.md']) {
      const text = await readFile(new URL(`../../${path}`, import.meta.url), 'utf8');
      const [, list = ''] =
        /^packages=\((.*)\)$/m.exec(text) ?? /`apt-get install ([^`]*)`/.exec(text) ?? [];
      expect([path, [...packages].filter((each) => !list.split(' ').includes(each))]).toEqual([
        path,
        [],
      ]);
    }
  });
});
