/** The supervisor before, beside and after its command: early and late signals, reasons, drains, budgets that hold, priorities. */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { Pending } from '../../supervisor/process/pending.ts';
import { StopReasonFiles } from '../../supervisor/signals/stopReasonFiles.ts';
import { readName, readProcess } from '../../supervisor/process/processTable.ts';
import {
  childrenOf,
  handles,
  PLACEMENTS,
  SupervisedProcess,
  supervisorBundle,
} from '../support/supervisedProcess.ts';
import { until } from '../support/until.ts';

const bundle = await supervisorBundle();
afterAll(() => bundle.remove());

const TICK = 'while :; do sleep 0.05; done';
const folder = (): string => mkdtempSync(join(bundle.folder, 'run-'));
const run = (args: readonly string[], env?: Record<string, string>): SupervisedProcess =>
  new SupervisedProcess(bundle.file, 'bare', args, env);
const marker = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'));

describe('a signal', () => {
  test('before the command has started: it never starts', async () => {
    const dir = folder();
    const path = join(dir, 'marker');
    // Holds the preparations up: opening it to write waits for a reader.
    expect(spawnSync('mkfifo', [join(dir, 'jobs')]).status).toBe(0);
    const supervised = run([
      '--runner-kind',
      'github',
      '--run-dir',
      dir,
      '--marker',
      path,
      '--',
      'sh',
      '-c',
      'echo ran',
    ]).reading();
    await until('the handlers', () => handles(supervised.supervisorPid, 1));
    supervised.signal('SIGTERM');
    expect(await supervised.ended()).toEqual({ code: null, signal: 'SIGTERM' });
    expect(supervised.errors).toEqual(['Entrypoint received interrupt: terminated']);
    expect(marker(path)).toMatchObject({
      exitCode: 143,
      signal: null,
      reason: 'cancelled',
      startedAt: null,
    });
    expect(supervised.stdout.toString()).toBe('');
  });

  test('after it has ended: cleanup continues, the status stays', async () => {
    const told = join(folder(), 'told');
    const supervised = run([
      '--cleanup-command',
      JSON.stringify([
        'sh',
        '-c',
        `echo cleaning $HOLDFAST_EXIT_CODE; until [ -e ${told} ]; do sleep 0.05; done; echo cleaned`,
      ]),
      '--',
      'sh',
      '-c',
      'exit 3',
    ]).reading();
    await supervised.printed('cleaning 3');
    supervised.signal('SIGTERM');
    await supervised.logged('terminated');
    writeFileSync(told, '');
    expect(await supervised.status()).toBe(3);
    expect(supervised.stdout.toString()).toContain('cleaned');
    expect(supervised.errors).toEqual([
      'Entrypoint received interrupt: terminated (the process has ended already)',
    ]);
  });

  test.each(['SIGUSR1', 'SIGUSR2'] as const)(
    '%s goes to the command and ends nothing',
    async (signal) => {
      const supervised = run([
        '--',
        'sh',
        '-c',
        `trap "echo got it; exit 0" USR1 USR2; echo up; ${TICK}`,
      ]).reading();
      await supervised.printed('up');
      supervised.signal(signal);
      await supervised.printed('got it');
      expect(await supervised.status()).toBe(0);
      expect(supervised.stderr).toBe('');
    },
  );
});

test('its status is not lost if it ends while its file is written', async () => {
  const dir = folder();
  const [reason, path] = [join(dir, 'stop-reason.tmp'), join(dir, 'marker')];
  // What the command is told waits here until somebody reads it.
  expect(spawnSync('mkfifo', [reason]).status).toBe(0);
  const supervised = run([
    '--run-dir',
    dir,
    '--marker',
    path,
    '--',
    'sh',
    '-c',
    `trap "exit 3" TERM; echo up; ${TICK}`,
  ]).reading();
  await supervised.printed('up');
  supervised.signal('SIGTERM');
  await until('the end is recorded', () => existsSync(path));
  expect(spawnSync('timeout', ['10', 'cat', reason]).stdout.toString()).toBe('cancelled\n');
  expect(await supervised.ended()).toEqual({ code: 3, signal: null });
});

describe('the reason', () => {
  test('is in the file before the signal, as an external request states it', async () => {
    const dir = folder();
    writeFileSync(join(dir, 'stated'), 'evicted');
    const supervised = run([
      '--stop-reason-source',
      join(dir, 'stated'),
      '--marker',
      join(dir, 'marker'),
      '--',
      'sh',
      '-c',
      `trap 'echo "why: $(cat "$HOLDFAST_STOP_REASON_FILE")"; exit 0' TERM; echo up; ${TICK}`,
    ]).reading();
    await supervised.printed('up');
    supervised.signal('SIGTERM');
    expect(await supervised.status()).toBe(0);
    expect(supervised.stdout.toString()).toContain('why: evicted');
    expect(marker(join(dir, 'marker'))).toMatchObject({ reason: 'evicted' });
  });

  test.each(['stop', 'drain', 'checkpoint'])(
    'a stop order stops the command before any signal (on-term %s)',
    async (onTerm) => {
      const dir = folder();
      const supervised = run([
        '--on-term',
        onTerm,
        '--stop-reason-source',
        join(dir, 'stated'),
        '--marker',
        join(dir, 'marker'),
        '--',
        'sh',
        '-c',
        `trap 'echo "why: $(cat "$HOLDFAST_STOP_REASON_FILE")"; exit 6' TERM; echo up; ${TICK}`,
      ]).reading();
      await supervised.printed('up');
      writeFileSync(join(dir, 'stated'), 'timeout');
      expect(await supervised.status()).toBe(6);
      expect(supervised.stdout.toString()).toContain('why: timeout');
      expect(supervised.logs.map(({ msg }) => msg)).toContain('stopping the process: timeout');
      expect(marker(join(dir, 'marker'))).toMatchObject({ exitCode: 6, reason: 'timeout' });
    },
  );

  test('checkpoint: evicted, never cancelled; attempt and state folder reach the command', async () => {
    const dir = folder();
    const script = `trap 'echo 7 > "$HOLDFAST_STATE_DIR/step"; exit 143' TERM; echo "attempt $HOLDFAST_ATTEMPT"; ${TICK}`;
    const supervised = run([
      '--on-term',
      'checkpoint',
      '--state-dir',
      join(dir, 'state'),
      '--attempt',
      '2',
      '--marker',
      join(dir, 'marker'),
      '--',
      'sh',
      '-c',
      script,
    ]).reading();
    await supervised.printed('attempt 2');
    supervised.signal('SIGTERM');
    expect(await supervised.status()).toBe(143);
    expect(marker(join(dir, 'marker'))).toMatchObject({ exitCode: 143, reason: 'evicted' });
    expect(readFileSync(join(dir, 'state/step'), 'utf8')).toBe('7\n');
  });

  test('two reasons at once: the command reads all of the last one', async () => {
    for (let round = 0; round < 50; round++) {
      const failures: unknown[] = [];
      const files = new StopReasonFiles(join(folder(), 'reason'), undefined, new Pending());
      files.writeForChild('drained', (error) => failures.push(error));
      files.writeForChild('cancelled', (error) => failures.push(error));
      await files.written();
      expect([readFileSync(files.forChild, 'utf8'), failures]).toEqual(['cancelled\n', []]);
    }
  });

  test('in the termination message is that of the marker', async () => {
    const dir = folder();
    writeFileSync(join(dir, 'message'), '');
    const supervised = run([
      '--termination-log',
      join(dir, 'message'),
      '--marker',
      join(dir, 'marker'),
      '--',
      'sh',
      '-c',
      'exit 9',
    ]);
    expect(await supervised.status()).toBe(9);
    expect(readFileSync(join(dir, 'message'), 'utf8')).toBe(
      readFileSync(join(dir, 'marker'), 'utf8'),
    );
  });
});

describe('the end is recorded', () => {
  test('before its remaining processes are killed', async () => {
    const dir = folder();
    const [message, path] = [join(dir, 'message'), join(dir, 'marker')];
    // Until somebody reads it, the termination message is not written.
    expect(spawnSync('mkfifo', [message]).status).toBe(0);
    const supervised = run([
      '--cleanup-timeout',
      '30s',
      '--termination-log',
      message,
      '--marker',
      path,
      '--',
      'sh',
      '-c',
      'sleep 77 & echo "left $!"; exit 3',
    ]).reading();
    await until('the end is recorded', () => existsSync(path));
    await supervised.printed('left');
    const left = Number(/left (\d+)/.exec(supervised.stdout.toString())?.[1]);
    expect(readProcess(left)?.zombie).toBe(false);
    expect(JSON.parse(readFileSync(message, 'utf8'))).toMatchObject({ exitCode: 3, reason: null });
    expect(await supervised.status()).toBe(3);
    expect(supervised.leftovers()).toEqual([]);
  });

  test('also if it could not start', async () => {
    const path = join(folder(), 'marker');
    const supervised = run(['--marker', path, '--', '/no/such/program']);
    expect(await supervised.status()).toBe(127);
    expect(marker(path)).toMatchObject({
      exitCode: 127,
      startedAt: null,
      error: 'spawn /no/such/program ENOENT',
    });
  });
});

describe('drain', () => {
  const drain = (timeout: string, script: string): SupervisedProcess =>
    run([
      '--on-term',
      'drain',
      '--drain-timeout',
      timeout,
      '--signal-timeout',
      '20s',
      '--',
      'sh',
      '-c',
      script,
    ]).reading();

  test('the command ends in time', async () => {
    const told = join(folder(), 'told');
    const supervised = drain(
      '60s',
      `trap "echo interrupted" TERM INT; echo up; until [ -e ${told} ]; do sleep 0.05; done; echo finished; exit 0`,
    );
    await supervised.printed('up');
    supervised.signal('SIGTERM');
    await supervised.logged('terminated');
    supervised.signal('SIGTERM');
    await supervised.logged('already draining');
    writeFileSync(told, '');
    expect(await supervised.status()).toBe(0);
    expect(supervised.stdout.toString()).toBe('up\nfinished\n');
    expect(supervised.errors).toEqual([
      'Entrypoint received interrupt: terminated',
      'Entrypoint received interrupt: terminated (already draining)',
    ]);
  });

  test.each([
    ['superseded', 0],
    ['cancelled', 10_000],
  ] as const)('cut short: %s is stated only %d ms after the signal', async (reason, lateMs) => {
    const dir = folder();
    const stated = join(dir, 'stated');
    const supervised = run([
      '--on-term',
      'drain',
      '--drain-timeout',
      '1h',
      '--stop-reason-source',
      stated,
      '--marker',
      join(dir, 'marker'),
      '--',
      'sh',
      '-c',
      `trap 'echo "why: $(cat "$HOLDFAST_STOP_REASON_FILE")"; exit 6' TERM; echo up; ${TICK}`,
    ]).reading();
    await supervised.printed('up');
    supervised.signal('SIGTERM');
    await supervised.logged('may finish within 1h0m0s');
    await new Promise((resolve) => setTimeout(resolve, lateMs)); // a kubelet that is as slow: nothing happens meanwhile that could be awaited
    expect(supervised.logs).toHaveLength(2);
    writeFileSync(stated, reason);
    expect(await supervised.status()).toBe(6);
    expect(supervised.stdout.toString()).toContain(`why: ${reason}`);
    expect(marker(join(dir, 'marker'))).toMatchObject({ exitCode: 6, reason });
  });

  test('the command does not end in time', async () => {
    const supervised = drain('300ms', 'echo up; exec sleep 77');
    await supervised.printed('up');
    supervised.signal('SIGTERM');
    expect(await supervised.ended()).toEqual({ code: null, signal: 'SIGTERM' });
    expect(supervised.errors.slice(1)).toEqual([
      'Process did not finish before 300ms drain timeout',
      'Process gracefully exited before 20s grace period',
    ]);
  });
});

describe('the grace period is kept', () => {
  const budget = ['--signal-timeout', '300ms', '--cleanup-timeout', '1s'];
  /** Without a budget none of these would end before the test's own time is over; each says itself how it ended. */
  const expectStopped = async (supervised: SupervisedProcess): Promise<void> => {
    supervised.signal('SIGTERM');
    await supervised.ended();
    expect(supervised.leftovers()).toEqual([]);
  };

  test('if cleanup does not end', async () => {
    const supervised = run([
      ...budget,
      '--cleanup-command',
      '["sh","-c","trap : TERM INT; while :; do sleep 1; done"]',
      '--',
      'sh',
      '-c',
      'echo up; exec sleep 77',
    ]).reading();
    await supervised.printed('up');
    await expectStopped(supervised);
    expect(supervised.errors).toContain('Cleanup did not finish before 1s cleanup timeout');
    expect(await supervised.ended()).toEqual({ code: null, signal: 'SIGTERM' });
  });

  test('if the termination message cannot be written completely', async () => {
    const dir = folder();
    expect(spawnSync('mkfifo', [join(dir, 'message')]).status).toBe(0);
    const supervised = run([
      ...budget,
      '--termination-log',
      join(dir, 'message'),
      '--',
      'sh',
      '-c',
      `trap "exit 0" TERM; echo up; ${TICK}`,
    ]).reading();
    await supervised.printed('up');
    await expectStopped(supervised);
    expect(supervised.errors.at(-1)).toBe('Could not finish before the end of the budget');
  });

  test('if the output is not read', async () => {
    const supervised = run([
      ...budget,
      '--runner-kind',
      'github',
      '--',
      'sh',
      '-c',
      'trap "" TERM; echo up >&2; while :; do echo "0123456789012345678901234567890123456789"; done',
    ]);
    await supervised.logged('up');
    await expectStopped(supervised);
  });

  test('on a busy machine: the signal is handled in the grace period', async () => {
    const hogs = availableParallelism() * 3;
    const supervised = run([
      '--signal-timeout',
      '30s',
      '--cleanup-timeout',
      '1s',
      '--',
      'sh',
      '-c',
      `for i in $(seq ${hogs}); do (while :; do :; done) & done; echo up; wait`,
    ]).reading();
    await supervised.printed('up');
    await expectStopped(supervised);
    expect(supervised.errors).toEqual([
      'Entrypoint received interrupt: terminated',
      'Process gracefully exited before 30s grace period',
    ]);
  });
});

// Who may, undoes it in the first moment: as if it had been forked before.
test.each(['sleep 77', 'nice -n -5 sleep 77'])(
  'the command and its processes run at nice 5, the supervisor does not: %s',
  async (command) => {
    const supervised = run(['--', 'sh', '-c', `${command} & echo up; wait`]).reading();
    await supervised.printed('up');
    const nice = (pid: number): number | undefined => readProcess(pid)?.nice;
    const [child = 0] = childrenOf(supervised.supervisorPid);
    const own = nice(supervised.supervisorPid) ?? Number.NaN;
    // It may print before the supervisor has come to that.
    await until('the command to run at nice 5', () => nice(child) === Math.max(own, 5));
    await until('its child', () => childrenOf(child).some((pid) => readName(pid) === 'sleep'));
    await until(
      'its child to run at nice 5',
      () => nice(childrenOf(child)[0] ?? 0) === Math.max(own, 5),
    );
    expect(own).toBeLessThan(5);
    supervised.signal('SIGTERM');
    await supervised.ended();
  },
);

describe.each(PLACEMENTS.filter((placement) => placement !== 'container'))(
  'placement %s: in a PID namespace shared with others',
  (placement) => {
    test('their processes are not killed', async () => {
      const stranger = spawn('sleep', ['77'], { stdio: 'ignore', detached: true });
      const sibling = spawn('sleep', ['77'], { stdio: 'ignore' });
      const supervised = new SupervisedProcess(bundle.file, placement, [
        '--signal-timeout',
        '200ms',
        '--assume-dedicated-pid1',
        '1',
        '--',
        'sh',
        '-c',
        'trap "" TERM; echo up; sleep 77',
      ]).reading();
      await supervised.printed('up');
      supervised.signal('SIGTERM');
      expect(await supervised.status()).toBe(137);
      expect(supervised.leftovers()).toEqual([]);
      for (const other of [stranger, sibling]) {
        expect([other.exitCode, other.signalCode]).toEqual([null, null]);
        other.kill('SIGKILL');
      }
    });
  },
);

test.each(PLACEMENTS.filter((placement) => placement !== 'bare'))(
  'placement %s: an orphan that has made a session and wiped its environment goes, too',
  async (placement) => {
    const name = `hidden-${process.pid}-${placement}`;
    const script = `trap "exit 0" TERM; (setsid env -i /bin/sh -c 'trap "" TERM; echo up; while :; do /bin/sleep 0.05; done' ${name} &); ${TICK}`;
    const supervised = new SupervisedProcess(bundle.file, placement, [
      '--',
      'sh',
      '-c',
      script,
    ]).reading();
    await supervised.printed('up');
    const hidden = (): number =>
      spawnSync('ps', ['-eo', 'args'], { encoding: 'utf8' })
        .stdout.split('\n')
        .filter((line) => line.startsWith('/bin/sh') && line.endsWith(name)).length;
    // Also while it forks, and there are two.
    expect(hidden()).toBeGreaterThan(0);
    supervised.signal('SIGTERM');
    expect(await supervised.status()).toBe(0);
    expect(hidden()).toBe(0);
  },
);

test('the command gets its own variables only', async () => {
  const supervised = run(
    ['--', 'sh', '-c', 'echo "[$HOLDFAST_TIMEOUT][$FOO][$HOLDFAST_CHILD_ENV_FOO][$BAR]"'],
    { HOLDFAST_TIMEOUT: '1h', HOLDFAST_CHILD_ENV_FOO: 'foo', BAR: 'bar' },
  ).reading();
  expect(await supervised.status()).toBe(0);
  expect(supervised.stdout.toString()).toBe('[][foo][][bar]\n');
});

test('all invalid options are reported, with status 127', async () => {
  const supervised = run(['--timeout', 'soon', '--on-term', 'maybe', '--']);
  expect(await supervised.status()).toBe(127);
  expect(supervised.errors).toEqual([
    'Could not start the process: nothing to run: supervisor [options] -- COMMAND [ARGUMENTS]',
    'Could not start the process: --timeout (HOLDFAST_TIMEOUT): "soon" is not a duration such as 30s, 10m or 1h30m',
    'Could not start the process: --on-term (HOLDFAST_ON_TERM): "maybe" is not one of drain, stop, checkpoint',
  ]);
});
