/** GitHub's runner under the supervisor: its output, its job hooks, and what the kubelet's probes see of it. */
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { once } from 'node:events';
import { afterAll, afterEach, describe, expect, test } from '@jest/globals';
import { supervisorBundle, SupervisedProcess } from '../support/supervisedProcess.ts';
import { HANGS_MS } from '../support/until.ts';

const bundle = await supervisorBundle();
const running: SupervisedProcess[] = [];
afterEach(async () => {
  for (const supervised of running.splice(0)) {
    if (supervised.process.exitCode === null && supervised.process.signalCode === null)
      supervised.signal('SIGTERM'); // not SIGKILL: its command would go on
    await supervised.ended();
  }
});
afterAll(() => bundle.remove());

/** Prints and runs what the test tells it to, line by line. */
const OBEDIENT = 'while read -r line; do eval "$line"; done';
const LISTENING = 'echo "2026-01-02 03:04:05Z: Listening for Jobs"';
const STARTED = 'echo "2026-01-02 03:04:05Z: Running job: build"';
const ENDED = 'echo "2026-01-02 03:04:05Z: Job build completed with result: Succeeded"';
const HOOK = (when: 'STARTED' | 'COMPLETED'): string =>
  `bash -e "$ACTIONS_RUNNER_HOOK_JOB_${when}"; echo "hook status $?"`;

function start(args: readonly string[], env: Record<string, string> = {}): SupervisedProcess {
  const supervised = new SupervisedProcess(bundle.file, 'bare', args, env);
  running.push(supervised);
  return supervised;
}

/** Options of a runner that drains at SIGTERM. */
const DRAINS = ['--on-term', 'drain', '--drain-timeout', '1h'];

async function runner(options: readonly string[] = [], env: Record<string, string> = {}) {
  const supervised = start(
    [
      '--runner-kind',
      'github',
      '--probe-port',
      '0',
      '--probe-host',
      '127.0.0.1',
      '--signal-timeout',
      '500ms',
      ...options,
      '--',
      'sh',
      '-c',
      OBEDIENT,
    ],
    env,
  ).reading();
  await supervised.logged('Probes listen on port');
  const port = Number(/port (\d+)/.exec(supervised.stderr)?.[1]);
  const probe = async (path: string): Promise<number> =>
    (await fetch(`http://127.0.0.1:${port}${path}`)).status;
  const state = async (): Promise<string> =>
    `startup ${await probe('/startup')} ready ${await probe('/ready')}`;
  const tell = (line: string): void => void supervised.process.stdin?.write(`${line}\n`);
  /** Awaits a state. */
  const becomes = async (wanted: string): Promise<void> => {
    const endMs = Date.now() + HANGS_MS;
    let current = await state();
    while (current !== wanted && Date.now() <= endMs) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      current = await state();
    }
    expect(current).toBe(wanted);
  };
  return { supervised, port, probe, state, tell, becomes };
}

/** @param ms - longer than from one look at the hooks' file to the next */
async function staysFor(ms: number, state: () => Promise<string>, wanted: string): Promise<void> {
  const states = new Set<string>();
  for (const end = Date.now() + ms; Date.now() < end;) states.add(await state());
  expect([...states]).toEqual([wanted]);
}

const REGISTERING = 'startup 503 ready 503';
const IDLE = 'startup 200 ready 200';
const BUSY = 'startup 200 ready 503';

describe('online and busy', () => {
  test('by the log', async () => {
    const { tell, state, becomes, probe } = await runner();
    expect(await state()).toBe(REGISTERING);
    expect(await probe('/live')).toBe(200);
    expect(await probe('/')).toBe(404);
    tell(LISTENING);
    await becomes(IDLE);
    tell(STARTED);
    await becomes(BUSY);
    tell(ENDED);
    await becomes(IDLE);
  });

  test('a runner for one job is not ready again after it', async () => {
    const { tell, state, becomes, supervised } = await runner(['--one-job', '1']);
    tell(LISTENING);
    await becomes(IDLE);
    tell(STARTED);
    await becomes(BUSY);
    tell(`${ENDED}; echo over`);
    await supervised.printed('over');
    expect(await state()).toBe(BUSY);
  });

  test('by the hooks, if the log does not show it', async () => {
    const { tell, becomes } = await runner();
    tell(HOOK('STARTED'));
    await becomes(BUSY);
    tell(HOOK('COMPLETED'));
    await becomes(IDLE);
  });

  test("not by the hooks' file, which jobs can write, if the log shows it; the log cannot be opened through /proc", async () => {
    const { tell, becomes, state, supervised } = await runner();
    tell(LISTENING);
    await becomes(IDLE);
    tell(HOOK('STARTED'));
    await supervised.printed('hook status 0');
    tell(
      `(setsid sh -c '${STARTED} >"/proc/$1/fd/1"; echo "forged: $?" >&2' sh $$ >/dev/null </dev/null)`,
    );
    await supervised.logged('forged: 2');
    await staysFor(800, state, IDLE);
  });

  test.each([
    ['a link to what never ends', 'ln -sf /dev/zero "$jobs"', 'ELOOP'],
    ['a pipe that nobody writes to', 'rm "$jobs"; mkfifo "$jobs"', 'ESPIPE'],
    ['nothing', 'rm "$jobs"', 'ENOENT'],
  ])(
    "a job that replaces the hooks' file by %s does not block the supervisor",
    async (_what, command, said) => {
      const { tell, becomes, state, supervised } = await runner();
      tell(`jobs="$(dirname "$ACTIONS_RUNNER_HOOK_JOB_STARTED")/jobs"; ${command}`);
      await supervised.logged(`failed to read the notes of the job hooks: ${said}`);
      expect(await state()).toBe(REGISTERING);
      tell(LISTENING);
      await becomes(IDLE);
      supervised.signal('SIGTERM');
      expect(await supervised.ended()).toEqual({ code: null, signal: 'SIGTERM' });
    },
  );

  test("a flood in the hooks' file is skipped, a limited part per check", async () => {
    const { tell, becomes } = await runner();
    tell(
      `jobs="$(dirname "$ACTIONS_RUNNER_HOOK_JOB_STARTED")/jobs"; head -c 9000 /dev/zero >>"$jobs"; echo >>"$jobs"; echo started >>"$jobs"`,
    );
    await becomes(BUSY);
  });

  test('the hook at the end of the job does not make it idle before the log does', async () => {
    const { tell, becomes, state, supervised } = await runner();
    tell(LISTENING);
    tell(STARTED);
    await becomes(BUSY);
    tell(HOOK('COMPLETED'));
    await supervised.printed('hook status 0');
    await staysFor(800, state, BUSY);
    tell(ENDED);
    await becomes(IDLE);
  });

  test("the user's own hooks run, and report their own failure", async () => {
    const folder = mkdtempSync(join(bundle.folder, 'hooks-'));
    writeFileSync(join(folder, "it's started.sh"), 'echo "own started in $(dirname "$0")"\n');
    writeFileSync(join(folder, 'completed.sh'), 'false\necho unreachable\n');
    const { tell, becomes, supervised } = await runner([], {
      ACTIONS_RUNNER_HOOK_JOB_STARTED: join(folder, "it's started.sh"),
      ACTIONS_RUNNER_HOOK_JOB_COMPLETED: join(folder, 'completed.sh'),
    });
    tell(HOOK('STARTED'));
    await becomes(BUSY);
    tell(HOOK('COMPLETED'));
    await becomes(IDLE);
    await supervised.printed('hook status 1');
    expect(supervised.stdout.toString()).toContain(`own started in ${folder}\nhook status 0\n`);
    expect(supervised.stdout.toString()).not.toContain('unreachable');
  });

  test('the hooks outlive a job that empties the directory for temporary files', async () => {
    const folder = mkdtempSync(join(bundle.folder, 'tmp-'));
    const { tell, becomes, supervised } = await runner([], { TMPDIR: folder });
    tell('rm -rf "$TMPDIR"/*');
    tell(HOOK('STARTED'));
    await becomes(BUSY);
    tell(HOOK('COMPLETED'));
    await becomes(IDLE);
    await supervised.printed('hook status 0');
  });

  test('an idle runner is stopped without a drain', async () => {
    const { tell, becomes, supervised } = await runner(DRAINS);
    tell(LISTENING);
    await becomes(IDLE);
    supervised.signal('SIGTERM');
    expect(await supervised.ended()).toEqual({ code: null, signal: 'SIGTERM' });
  });

  test('"not ready" means a job only: an idle runner that ends stays ready until its end', async () => {
    const cleaned = join(mkdtempSync(join(bundle.folder, 'cleaned-')), 'fifo');
    execFileSync('mkfifo', [cleaned]);
    const { tell, becomes, port, probe, supervised } = await runner([
      '--cleanup-timeout',
      '20s',
      '--cleanup-command',
      JSON.stringify(['sh', '-c', `echo cleaning; read -r line < ${cleaned}`]),
    ]);
    tell(LISTENING);
    await becomes(IDLE);
    expect(await probe('/ready?wait=1500ms')).toBe(200);
    supervised.signal('SIGTERM');
    await supervised.printed('cleaning');
    expect(await probe('/ready')).toBe(200);
    const held = connect(port, '127.0.0.1');
    await once(held, 'connect');
    held.write('GET /ready?wait=1500ms HTTP/1.1\r\n\r\n');
    expect(await probe('/live')).toBe(200); // asked later, so that one was read
    writeFileSync(cleaned, '\n');
    const [answer] = (await once(held, 'data')) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 200 /);
    expect(await supervised.ended()).toEqual({ code: null, signal: 'SIGTERM' });
  });

  test('a busy runner is drained, and stopped after its job has ended and was reported', async () => {
    const { tell, becomes, supervised } = await runner(DRAINS);
    tell(LISTENING);
    tell(STARTED);
    await becomes(BUSY);
    supervised.signal('SIGTERM');
    await supervised.logged('may finish');
    tell(ENDED);
    const startMs = performance.now();
    expect(await supervised.ended()).toEqual({ code: null, signal: 'SIGTERM' });
    expect(performance.now() - startMs).toBeGreaterThan(4000);
  });

  test('a runner whose job has just ended is drained until the job was reported', async () => {
    const { tell, becomes, supervised } = await runner(DRAINS);
    tell(LISTENING);
    tell(STARTED);
    await becomes(BUSY);
    tell(ENDED);
    await becomes(IDLE);
    const startMs = performance.now();
    supervised.signal('SIGTERM');
    await supervised.logged('may finish');
    expect(await supervised.ended()).toEqual({ code: null, signal: 'SIGTERM' });
    expect(performance.now() - startMs).toBeGreaterThan(1000);
  });
});

describe("the job of Gitea's runner, which continues after SIGTERM", () => {
  const log = (text: string): string =>
    `echo 'time="2026-01-02T03:04:05Z" level=info msg="${text}"'`;

  test.each([
    ['ends within the grace period', 'exit 0', '60s', 'completed'],
    ['is killed after it', 'while :; do sleep 1; done', '300ms', 'running'],
  ])('%s', async (_what, afterwards, signalTimeout, job) => {
    const marker = join(mkdtempSync(join(bundle.folder, 'gitea-')), 'marker');
    const shutDown = `${log('runner: r-1 shutdown initiated, waiting 24h0m0s')}; ${afterwards}`;
    const supervised = start([
      '--runner-kind',
      'gitea',
      '--signal-timeout',
      signalTimeout,
      '--marker',
      marker,
      '--',
      'bash',
      '-c',
      `onTerm() { ${shutDown}; }; trap onTerm TERM; ${log('task 4 repo is acme/app')}; while :; do sleep 0.05; done`,
    ]).reading();
    await supervised.printed('task 4');
    supervised.signal('SIGTERM');
    await supervised.ended();
    expect(supervised.stdout.toString()).toContain('shutdown initiated');
    expect(JSON.parse(readFileSync(marker, 'utf8'))).toMatchObject({ job });
  });
});

describe('probes', () => {
  test('a command without a CI server is online from its start, and always busy', async () => {
    const supervised = start([
      '--probe-port',
      '0',
      '--probe-host',
      '127.0.0.1',
      '--',
      'sh',
      '-c',
      'echo up; exec sleep 77',
    ]).reading();
    await supervised.printed('up');
    const port = /port (\d+)/.exec(supervised.stderr)?.[1];
    const status = async (path: string): Promise<number> =>
      (await fetch(`http://127.0.0.1:${port}${path}`)).status;
    expect([await status('/startup'), await status('/ready'), await status('/live')]).toEqual([
      200, 503, 200,
    ]);
  });

  test('slow clients do not block the kubelet', async () => {
    const { port, probe, tell, becomes } = await runner();
    tell(LISTENING);
    await becomes(IDLE);
    const slow: Socket[] = [];
    for (let i = 0; i < 100; i++) {
      const socket = connect(port, '127.0.0.1').on('error', () => undefined);
      await once(socket, 'connect');
      socket.write('GET /ready HT');
      slow.push(socket);
    }
    expect(await probe('/ready')).toBe(200);
    for (const socket of slow) if (!socket.closed) await once(socket, 'close'); // none is kept
  });

  test('a long poll gets each change', async () => {
    const { probe, tell } = await runner();
    const hears = async (path: string, wanted: number): Promise<void> => {
      while ((await probe(`${path}?wait=1500ms`)) !== wanted);
    };
    tell(LISTENING);
    await hears('/startup', 200);
    await hears('/ready', 200);
    tell(STARTED);
    await hears('/ready', 503);
    tell(ENDED);
    await hears('/ready', 200);
  });

  test('a port in use: it does not start', async () => {
    const { port } = await runner();
    const marker = join(mkdtempSync(join(bundle.folder, 'taken-')), 'marker');
    const second = start([
      '--probe-port',
      String(port),
      '--probe-host',
      '127.0.0.1',
      '--marker',
      marker,
      '--',
      'true',
    ]);
    expect(await second.status()).toBe(127);
    expect(second.errors[0]).toMatch(/^Could not start the process: listen EADDRINUSE/);
    // By this a worker knows that another port is all it takes.
    expect(JSON.parse(readFileSync(marker, 'utf8'))).toMatchObject({
      exitCode: 127,
      startedAt: null,
      error: expect.stringMatching(/^listen EADDRINUSE/),
    });
  });
});

describe('output', () => {
  test('passes unchanged to a reader that starts late, including the last incomplete line', async () => {
    const path = join(mkdtempSync(join(bundle.folder, 'out-')), 'bytes');
    const bytes = Buffer.alloc(3_000_001, 'x');
    for (let i = 0; i < bytes.length; i++) bytes[i] = (i * 7919 + (i >> 8)) % 256;
    writeFileSync(path, bytes);
    const supervised = start([
      '--runner-kind',
      'github',
      '--',
      'sh',
      '-c',
      `echo begin >&2; cat ${path}; printf last`,
    ]);
    await supervised.logged('begin');
    supervised.reading();
    expect(await supervised.status()).toBe(0);
    await supervised.closed;
    expect(supervised.stdout.length).toBe(bytes.length + 4);
    expect(supervised.stdout.equals(Buffer.concat([bytes, Buffer.from('last')]))).toBe(true);
  });

  test('is not held open by a hidden process either', async () => {
    // It has a session of its own, no mark in its environment, and its parent is gone; and without tini nobody of ours adopts it.
    const supervised = start([
      '--runner-kind',
      'github',
      '--cleanup-timeout',
      '5s',
      '--',
      'sh',
      '-c',
      '(setsid env -i sleep 77 & echo "left $!")',
    ]).reading();
    expect(await supervised.status()).toBe(0);
    expect(supervised.logs).toEqual([]);
    const left = Number(/left (\d+)/.exec(supervised.stdout.toString())?.[1]);
    process.kill(left, 'SIGKILL');
  });

  // A program that is root's whoever starts it takes root to make.
  const testAsRoot = process.getuid?.() === 0 ? test : test.skip;
  testAsRoot("nor does root's, whom the supervisor may not kill", async () => {
    const folder = mkdtempSync(join(bundle.folder, 'root-'));
    for (const each of [bundle.folder, folder]) chmodSync(each, 0o777);
    const sudo = join(folder, 'sudo');
    copyFileSync('/usr/bin/perl', sudo);
    chmodSync(sudo, 0o4755);
    const script = `${sudo} -e '%ENV = (); $< = $> = 0; $| = 1; print "root $$\\n"; exec "/bin/sleep", "77"' & read -r line`;
    const supervised = new SupervisedProcess(
      bundle.file,
      'bare',
      [
        '--runner-kind',
        'github',
        '--run-dir',
        folder,
        '--cleanup-timeout',
        '5s',
        '--marker',
        join(folder, 'marker'),
        '--',
        'sh',
        '-c',
        script,
      ],
      {},
      { uid: 65_534, gid: 65_534 },
    ).reading();
    running.push(supervised);
    await supervised.printed('root ');
    const root = Number(/root (\d+)/.exec(supervised.stdout.toString())?.[1]);
    supervised.process.stdin?.write('end\n');
    expect(await supervised.status()).toBe(0);
    await supervised.logged('Could not kill processes');
    expect(supervised.errors).toEqual([`Could not kill processes ${root}`]);
    expect(JSON.parse(readFileSync(join(folder, 'marker'), 'utf8'))).toMatchObject({
      exitCode: 0,
      reason: null,
    });
    process.kill(root, 'SIGKILL');
  });

  test('a process that holds the pipe open does not delay the end', async () => {
    const supervised = start([
      '--runner-kind',
      'github',
      '--',
      'sh',
      '-c',
      'setsid sleep 77 & echo done',
    ]).reading();
    expect(await supervised.status()).toBe(0);
    expect(supervised.stdout.toString()).toBe('done\n');
    expect(supervised.leftovers()).toEqual([]);
  });
});
