/**
 * The end of every kind of child process, stopped or by itself: status, log lines, marker, duration,
 * and no remaining processes.
 */
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import {
  census,
  FORWARDS,
  gracefully,
  interrupted,
  notExited,
  STOPPED_CHILDREN,
  strangers,
  swallowed,
  TICK,
  timedOut,
} from '../support/stoppedChildren.ts';
import {
  supervisorBundle,
  PLACEMENTS,
  type Placement,
  SupervisedProcess,
} from '../support/supervisedProcess.ts';

const bundle = await supervisorBundle();
afterAll(() => bundle.remove());

const GRACE_MS = 800;
/** Maximum duration of a cleanup, on any machine (ms). */
const CLEANUP_MS = 30_000;
/** Maximum delay of a busy machine (ms). */
const SLACK_MS = 15_000;
const GRACEFULLY = gracefully('1m0s');
/** For children that end by themselves: a grace period that is longer on any machine. */
const AMPLE = ['--signal-timeout', '60s'];
const NOT = notExited('800ms');

interface Marker {
  exitCode: number;
  signal: string | null;
  reason: string | null;
  startedAt: string | null;
  endedAt: string;
}

function start(placement: Placement, script: string, options: readonly string[] = []) {
  const folder = mkdtempSync(join(bundle.folder, 'run-'));
  const path = join(folder, 'marker');
  const supervised = new SupervisedProcess(bundle.file, placement, [
    '--signal-timeout',
    `${GRACE_MS}ms`,
    '--cleanup-timeout',
    `${CLEANUP_MS}ms`,
    '--marker',
    path,
    '--cleanup-command',
    JSON.stringify(census(placement === 'container')),
    ...options,
    '--',
    'sh',
    '-c',
    script,
  ]).reading();
  const marker = (): Marker => JSON.parse(readFileSync(path, 'utf8')) as Marker;
  return { supervised, marker };
}

describe.each(PLACEMENTS)('placement %s, SIGTERM, a child that', (placement) => {
  test.each(STOPPED_CHILDREN)(
    '$child',
    async ({ script, status, signal = null, graceful, options = [], twice = false, prints }) => {
      const told = join(mkdtempSync(join(bundle.folder, 'told-')), 'twice');
      const { supervised, marker } = start(
        placement,
        twice ? `SAVE="until [ -e ${told} ]; do sleep 0.05; done"; ${script}` : script,
        [...options, ...(graceful ? AMPLE : [])],
      );
      await supervised.printed('up');
      const startMs = performance.now();
      supervised.signal('SIGTERM');
      if (twice) {
        await supervised.logged('terminated');
        supervised.signal('SIGTERM');
        await supervised.logged(swallowed('terminated'));
        writeFileSync(told, '');
      }
      expect(await supervised.status()).toBe(status);
      expect(performance.now() - startMs).toBeLessThan(GRACE_MS + CLEANUP_MS + SLACK_MS);
      expect(supervised.errors).toEqual([
        interrupted('terminated'),
        ...(twice ? [swallowed('terminated')] : []),
        graceful ? GRACEFULLY : NOT,
      ]);
      const { startedAt, endedAt, ...end } = marker();
      expect(end).toMatchObject({ exitCode: status, signal, reason: 'cancelled' });
      expect(Date.parse(endedAt)).toBeGreaterThanOrEqual(Date.parse(startedAt ?? ''));
      await supervised.printed('census');
      if (prints !== undefined) await supervised.printed(prints);
      const printed = supervised.stdout.toString();
      expect(printed).toContain('reason=cancelled');
      // Only the census in a container lists processes.
      expect(placement === 'container' ? strangers(printed) : []).toEqual([]);
      expect(supervised.leftovers()).toEqual([]);
    },
  );
});

const placement = PLACEMENTS[0] ?? 'bare';
const IDLE_TIMEOUT = `trap "" INT TERM QUIT HUP; echo up; sleep 77`;
const PLAIN = `echo up; exec sleep 77`;

describe('a stop of the command alone', () => {
  const TARGET = ['--signal-target', 'process'];

  test('signals its remaining processes after its end', async () => {
    const inner = `trap 'echo told; exit' TERM; echo up; sleep 77 & wait`;
    const { supervised, marker } = start(placement, `sh -c "${inner}" & wait`, [
      ...AMPLE,
      ...TARGET,
    ]);
    await supervised.printed('up');
    supervised.signal('SIGTERM');
    expect(await supervised.status()).toBe(143);
    expect(supervised.stdout.toString()).toContain('told');
    expect(supervised.errors).toEqual([interrupted('terminated'), GRACEFULLY]);
    expect(marker()).toMatchObject({ signal: 'SIGTERM' });
  });

  test('does not signal a trap again that takes more than half of the grace period', async () => {
    const script = `trap 'end=$(($(date +%s) + 12)); until [ $(date +%s) -ge $end ]; do sleep 0.1; done; echo saved; exit 3' TERM; echo up; while :; do sleep 0.1; done`;
    const { supervised } = start(placement, `exec bash -c '${script.replaceAll("'", `'\\''`)}'`, [
      '--signal-timeout',
      '20s',
      ...TARGET,
    ]);
    await supervised.printed('up');
    supervised.signal('SIGTERM');
    expect(await supervised.status()).toBe(3);
    expect(supervised.stdout.toString()).toContain('saved');
  });

  test('signals a program that dash or bash waits for at half of the grace period, but not what its trap starts', async () => {
    const script = `trap 'sh -c "sleep 1; echo saved"; exit 3' TERM; echo up; sleep 77; exit 4`;
    const stopped = async (shell: string) => {
      const { supervised } = start(
        placement,
        `exec ${shell} -c '${script.replaceAll("'", `'\\''`)}'`,
        ['--signal-timeout', '20s', ...TARGET],
      );
      await supervised.printed('up');
      supervised.signal('SIGTERM');
      const status = await supervised.status();
      const saved = supervised.stdout.includes('saved');
      return { shell, status, saved, errors: supervised.errors };
    };
    const shells = ['dash', 'bash'];
    const errors = [interrupted('terminated'), gracefully('20s')];
    expect(await Promise.all(shells.map(stopped))).toEqual(
      shells.map((shell) => ({ shell, status: 3, saved: true, errors })),
    );
  });
});

describe('how it stops the command', () => {
  test.each([
    { by: 'SIGTERM', word: 'terminated', status: 143 },
    { by: 'SIGINT', word: 'interrupt', status: 130 },
    { by: 'SIGQUIT', word: 'quit', status: 131 },
    { by: 'SIGHUP', word: 'hangup', status: 129 },
  ] as const)(
    '$by is passed on as it is, and its status comes back',
    async ({ by, word, status }) => {
      const { supervised, marker } = start(placement, PLAIN, AMPLE);
      await supervised.printed('up');
      supervised.signal(by);
      expect(await supervised.status()).toBe(status);
      expect(supervised.errors).toEqual([interrupted(word), GRACEFULLY]);
      expect(marker()).toMatchObject({ exitCode: status, signal: by, reason: 'cancelled' });
    },
  );

  test.each(['SIGTERM', 'SIGINT', 'SIGQUIT', 'SIGHUP'] as const)(
    '%s ignored: killed at the end of the grace',
    async (by) => {
      const { supervised, marker } = start('bare', IDLE_TIMEOUT);
      await supervised.printed('up');
      supervised.signal(by);
      expect(await supervised.ended()).toEqual({ code: null, signal: 'SIGKILL' });
      expect(supervised.errors.at(-1)).toBe(NOT);
      expect(marker()).toMatchObject({ exitCode: 137, signal: 'SIGKILL' });
      expect(supervised.leftovers()).toEqual([]);
    },
  );

  test('a waiting parent gets the signal itself, except SIGQUIT', async () => {
    const term = start('bare', PLAIN);
    const quit = start('bare', PLAIN);
    await Promise.all([term.supervised.printed('up'), quit.supervised.printed('up')]);
    term.supervised.signal('SIGTERM');
    quit.supervised.signal('SIGQUIT');
    expect(await term.supervised.ended()).toEqual({ code: null, signal: 'SIGTERM' });
    expect(await quit.supervised.ended()).toEqual({ code: 131, signal: null });
  });

  test('a second signal of another kind is ignored', async () => {
    const told = join(mkdtempSync(join(bundle.folder, 'told-')), 'all');
    const { supervised } = start(
      placement,
      `trap "while [ ! -e ${told} ]; do sleep 0.05; done; exit 4" TERM; trap "exit 9" INT; echo up; ${TICK}`,
      AMPLE,
    );
    await supervised.printed('up');
    supervised.signal('SIGTERM');
    await supervised.logged('terminated');
    supervised.signal('SIGINT');
    await supervised.logged(swallowed('interrupt'));
    writeFileSync(told, '');
    expect(await supervised.status()).toBe(4);
    expect(supervised.errors).toEqual([
      interrupted('terminated'),
      swallowed('interrupt'),
      GRACEFULLY,
    ]);
  });

  test('stop.signals: a sequence of signals', async () => {
    const { supervised } = start(
      placement,
      `trap "echo got-int" INT; trap "echo got-term; exit 6" TERM; echo up; ${TICK}`,
      ['--stop-signals', 'SIGINT,SIGTERM@200ms', ...AMPLE],
    );
    await supervised.printed('up');
    supervised.signal('SIGTERM');
    expect(await supervised.status()).toBe(6);
    expect(supervised.stdout.toString()).toMatch(/got-int\n[^]*got-term\n/);
  });
});

describe('which processes get the signal', () => {
  test.each([
    ['process', 'child got term=0 usr1=1'],
    ['group', 'child got term=1 usr1=1'],
  ])('%s', async (to, prints) => {
    const { supervised, marker } = start(placement, FORWARDS, [
      '--signal-target',
      to,
      '--signal-timeout',
      '30s',
    ]);
    await supervised.printed('up');
    supervised.signal('SIGTERM');
    expect(await supervised.status()).toBe(5);
    expect(supervised.stdout.toString()).toContain(prints);
    expect(marker()).toMatchObject({ exitCode: 5, signal: null, reason: 'cancelled' });
  });

  test('process: at the end of the grace period all are killed, also those without a signal', async () => {
    const { supervised, marker } = start(
      placement,
      `trap "exit 4" TERM; sh -c 'trap "" INT TERM; echo up; sleep 77; :' & ${TICK}`,
      ['--signal-target', 'process', '--signal-timeout', '8s'],
    );
    await supervised.printed('up');
    supervised.signal('SIGTERM');
    expect(await supervised.status()).toBe(4);
    expect(supervised.errors).toEqual([interrupted('terminated'), notExited('8s')]);
    expect(marker()).toMatchObject({ exitCode: 4, signal: null, reason: 'cancelled' });
    expect(supervised.leftovers()).toEqual([]);
  });
});

describe('timeout', () => {
  test('SIGINT, and status 127 whatever status the command has', async () => {
    const { supervised, marker } = start(placement, `trap "exit 0" INT; echo up; ${TICK}`, [
      '--timeout',
      '5s',
      ...AMPLE,
    ]);
    expect(await supervised.status()).toBe(127);
    expect(supervised.errors).toEqual([timedOut('5s'), GRACEFULLY]);
    expect(marker()).toMatchObject({ exitCode: 127, signal: null, reason: 'timeout' });
    expect(supervised.stdout.toString()).toContain('reason=timeout');
  });

  test('then SIGKILL', async () => {
    const { supervised, marker } = start(placement, `trap "" INT; echo up; sleep 77`, [
      '--timeout',
      '5s',
    ]);
    expect(await supervised.status()).toBe(127);
    expect(supervised.errors).toEqual([timedOut('5s'), NOT]);
    expect(marker()).toMatchObject({ exitCode: 127, signal: 'SIGKILL', reason: 'timeout' });
  });
});

describe('the end without a stop', () => {
  test.each([
    { what: 'the status', script: 'exit 42', status: 42, signal: null },
    { what: 'success', script: 'echo out', status: 0, signal: null },
    {
      what: 'a kill from elsewhere (out of memory)',
      script: 'kill -9 $$',
      status: 137,
      signal: 'SIGKILL',
    },
    { what: 'an abort', script: 'kill -6 $$', status: 134, signal: 'SIGABRT' },
  ])('$what', async ({ script, status, signal }) => {
    const { supervised, marker } = start(placement, script);
    expect(await supervised.status()).toBe(status);
    expect(supervised.logs).toEqual([]);
    expect(marker()).toMatchObject({ exitCode: status, signal, reason: null });
  });

  test('kills its remaining processes immediately', async () => {
    const { supervised } = start(
      'bare',
      `setsid sh -c 'trap "" TERM; echo up; sleep 77; :' & while [ -z "$(cat /proc/$!/cmdline | tr -d '\\0')" ]; do :; done; sleep 0.2; exit 0`,
    );
    expect(await supervised.status()).toBe(0);
    expect(supervised.leftovers()).toEqual([]);
  });

  test('is recorded for a command that cannot start', async () => {
    const supervised = new SupervisedProcess(bundle.file, placement, [
      '--marker',
      join(bundle.folder, 'none'),
      '--',
      '/no/such/command',
    ]).reading();
    expect(await supervised.status()).toBe(127);
    expect(supervised.errors).toEqual([
      'Could not start the process: spawn /no/such/command ENOENT',
    ]);
    expect(JSON.parse(readFileSync(join(bundle.folder, 'none'), 'utf8'))).toMatchObject({
      exitCode: 127,
      signal: null,
      reason: null,
      startedAt: null,
    });
  });
});
