/** The script that starts Gitea's runner, with a fake program that records its calls. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import {
  GITEA_RUNNER,
  GITEA_RUNNER_EPHEMERAL,
  GITEA_RUNNER_FILE,
} from '../../core/domain/runnerKinds/gitea.ts';
import { until } from '../support/until.ts';

let home: string;
beforeEach(() => void (home = mkdtempSync(join(tmpdir(), 'holdfast-gitea-script-'))));
afterEach(() => {
  for (const { pid } of started.splice(0)) {
    try {
      process.kill(-(pid ?? 0), 'SIGKILL');
    } catch {
      // It has ended.
    }
  }
  rmSync(home, { recursive: true });
});
const started: ChildProcess[] = [];

/** @param program - body of the runner's program; `$n` is the number of its calls so far */
function start(ephemeral: boolean, program: string): ChildProcess {
  writeFileSync(
    join(home, 'gitea-runner'),
    `#!/bin/sh\ntrap 'echo asked >>asked' TERM\necho "$@" >>calls\nn=$(grep -c . calls)\n${program}\n`,
    { mode: 0o755 },
  );
  const [shell = '', ...args] = GITEA_RUNNER.image?.command ?? [];
  const script = spawn(shell, args, {
    env: {
      PATH: `${home}:${process.env['PATH']}`,
      RUNNER_HOME: home,
      [GITEA_RUNNER_FILE]: '{"id":1}',
      [GITEA_RUNNER_EPHEMERAL]: String(ephemeral),
    },
    stdio: 'ignore',
    detached: true,
  });
  started.push(script);
  return script;
}

const read = (file: string): string => {
  try {
    return readFileSync(join(home, file), 'utf8');
  } catch {
    return '';
  }
};
const calls = (): string[] => read('calls').trim().split('\n');

test('an ephemeral runner is started once, with its own registration', async () => {
  const [status] = await once(start(true, 'exit 3'), 'exit');
  expect([status, calls(), read('.runner')]).toEqual([
    3,
    ['daemon --config runner.yaml'],
    '{"id":1}',
  ]);
});

test('a static runner is started for each job, until it fails', async () => {
  const [status] = await once(start(false, '[ $n -lt 3 ] || exit 4'), 'exit');
  expect([status, calls()]).toEqual([4, Array(3).fill('daemon --once --config runner.yaml')]);
});

test('a static runner that is stopped finishes its job, and takes no other', async () => {
  const script = start(false, 'while [ ! -e finish ]; do sleep 0.05; done\nexit 0');
  const ended = once(script, 'exit');
  await until('the runner to run', () => calls()[0] !== '');
  // Twice: each ends the wait of the shell.
  for (const times of [1, 2]) {
    script.kill('SIGTERM');
    await until('the runner to be called', () => read('asked').split('\n').length > times);
  }
  expect(script.exitCode).toBeNull();
  writeFileSync(join(home, 'finish'), '');
  expect(await ended).toEqual([0, null]);
  expect(calls()).toHaveLength(1);
});
