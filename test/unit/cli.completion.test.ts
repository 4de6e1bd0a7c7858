/** Completion in shells: the candidates, and each script in its own shell, with keys typed on a terminal where it needs one. */
import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { SCRIPTS } from '../../cli/completion/scripts.ts';
import { isShellWord } from '../../cli/completion/shellWord.ts';
import { runCli } from '../support/cli.ts';
import { PROJECT } from '../support/markdown.ts';
import { until } from '../support/until.ts';

/** Nothing listens at this address, so the candidates come from the commands themselves. */
const NOBODY = { TEMPORAL_ADDRESS: '127.0.0.1:1' };

async function offered(...words: string[]): Promise<string[]> {
  const { status, stdout, stderr } = await runCli(['complete', '--', ...words], NOBODY);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.split('\t')[0] ?? '');
}

test.each<[words: string[], offers: string[]]>([
  [['runner', 'dr'], ['drain']],
  [
    ['set', ''],
    ['apply', 'list', 'get', 'scale', 'pause', 'resume', 'hold', 'delete', 'schema', 'help'],
  ],
  [['runner', 'list', '--ph'], ['--phase']],
  [['runner', 'list', '--phase', 'Un'], ['Unregistering']],
  [['runner', 'list', '--phase=Un'], ['--phase=Unregistering']],
  [['runner', 'list', '--phase', '=', 'Un'], ['Unregistering']],
  [['runner', 'list', '--outcome', 's'], ['succeeded']],
  [
    ['runner', 'cancel', '--mode', ''],
    ['drain', 'stop', 'force'],
  ],
  [['-o', 'y'], ['yaml']],
  [['runner', 'list', '-o', 'y'], ['yaml']],
  [['--namespace', 'runner', 'se'], ['set']],
  [
    ['completion', ''],
    ['bash', 'zsh', 'fish'],
  ],
  [['set', 'apply', '-f', ''], []],
  [['run', '--', 'make', '--o'], []],
  [['complet'], ['completion']],
  [['runner', 'get', 'x'], []],
])('%j is completed to %j', async (words, offers) => {
  expect(await offered(...words)).toEqual(offers);
});

test.each([
  ['runner-linux-0123456789', true],
  ['job-group:web:acme/web:main:pr-1', true],
  ['set_a.b@c+d=e%f', true],
  ['runner-1;touch X;#', false],
  ['$(touch X)', false],
  ['`touch X`', false],
  ["a'b", false],
  ['a"b', false],
  ['a b', false],
  ['a\nb', false],
  ['a\\b', false],
  ['a&b', false],
  ['a|b', false],
  ['a>b', false],
  ['a*', false],
  ['~root', false],
  ['#x', false],
  ['!!', false],
  ['{a,b}', false],
  ['--force', false],
  ['', false],
])('an ID %j is completed by a shell: %s', (id, is) => {
  expect(isShellWord(id)).toBe(is);
});

test('options of the command and of the program, each once', async () => {
  const options = await offered('runner', 'list', '--');
  expect(options).toEqual(
    expect.arrayContaining(['--set', '--watch', '--output', '--address', '--help']),
  );
  expect(options).toEqual([...new Set(options)]);
});

/** Whether the shell is installed. Required ones must be. */
function there(shell: string): boolean {
  try {
    execFileSync(shell, ['-c', ':'], { stdio: 'ignore' });
    return true;
  } catch {
    if (process.env['HOLDFAST_REQUIRE'] === 'all')
      throw new Error(`${shell} is missing: apt-get install ${shell}`);
    return false;
  }
}

describe('in a shell', () => {
  let folder: string;
  let env: Record<string, string>;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'holdfast-shell-'));
    writeFileSync(
      join(folder, 'holdfast'),
      `#!/bin/sh\nexec '${process.execPath}' '${join(PROJECT, 'cli/main.ts')}' "$@"\n`,
    );
    chmodSync(join(folder, 'holdfast'), 0o755);
    writeFileSync(join(folder, 'sets.yaml'), '');
    env = { PATH: `${folder}:${process.env['PATH'] ?? ''}`, HOME: folder, TERM: 'dumb', ...NOBODY };
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** Types into a shell on a terminal: each line after the previous one was executed, key by key. @returns its output */
  async function typed(shell: string, lines: readonly string[], ends: RegExp): Promise<string> {
    const terminal = spawn('script', ['-qfc', shell, '/dev/null'], {
      cwd: folder,
      env,
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    let printed = '';
    terminal.stdout.on('data', (data: Buffer) => (printed += data.toString()));
    const shown = (): string => JSON.stringify(printed);
    try {
      for (const [index, line] of lines.entries()) {
        terminal.stdin.write(`${line}; echo "done-"${index}\n`);
        await until(
          `line ${index} to be carried out`,
          () => printed.includes(`done-${index}`),
          shown,
        );
      }
      await until('the completed line to be carried out', () => ends.test(printed), shown);
      return printed;
    } finally {
      terminal.kill('SIGKILL');
    }
  }

  const SCHEMA = /"title": "A runner \(Holdfast\)"/;

  const testWithBash = there('bash') ? test : test.skip;
  testWithBash(
    'bash: a command is completed and executed, with the script sourced twice; a command in quotes is never executed',
    async () => {
      const printed = await typed(
        'bash --norc --noprofile -i',
        [
          'source <(holdfast completion bash); source <(holdfast completion bash)',
          'holdfast runner sche\t',
        ],
        SCHEMA,
      );
      expect(printed).not.toMatch(/error|readonly/);
      const replies = (line: string[]): string[] =>
        execFileSync(
          'bash',
          [
            '--norc',
            '-c',
            `${SCRIPTS.bash}COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _holdfast; printf '%s\\n' "\${COMPREPLY[@]}"`,
            'bash',
            ...line,
          ],
          { cwd: folder, env, encoding: 'utf8' },
        )
          .split('\n')
          .filter(Boolean);
      expect(replies(['holdfast', 'runner', 'list', '--outcome', '=', 'su'])).toEqual([
        'succeeded',
      ]);
      expect(
        replies(['holdfast', 'runner', 'list', '-q', '$(touch owned)', '--all', '--ph']),
      ).toEqual(['--phase']);
      expect(execFileSync('ls', [folder], { encoding: 'utf8' })).not.toContain('owned');
    },
  );
  testWithBash('bash: a candidate is one word, with any content', async () => {
    const hostile = 'runner-1;touch owned;#';
    const stub = join(folder, 'stub');
    mkdirSync(stub);
    // The sourced script may come from another version of holdfast.
    writeFileSync(
      join(stub, 'holdfast'),
      `#!/bin/sh\nif [ "$1" = complete ]; then printf '%s\\tx\\n' '${hostile}'; else printf '<%s>\\n' "$@"; fi\n`,
    );
    chmodSync(join(stub, 'holdfast'), 0o755);
    writeFileSync(join(folder, 'completion.bash'), SCRIPTS.bash);
    await typed(
      'bash --norc --noprofile -i',
      [`PATH=${stub}:$PATH`, 'source completion.bash', 'holdfast runner get ru\t'],
      /<runner-1;touch owned;#>/,
    );
    expect(existsSync(join(folder, 'owned'))).toBe(false);
  });

  const testWithZsh = there('zsh') ? test : test.skip;
  testWithZsh(
    'zsh: a command is completed and executed; files are offered if there are no candidates',
    async () => {
      await typed(
        'zsh -f -i',
        ['source <(holdfast completion zsh)', 'holdfast runner sche\t'],
        SCHEMA,
      );
      await typed(
        'zsh -f -i',
        [
          'source <(holdfast completion zsh)',
          'echo holdfast; : holdfast',
          'holdfast set apply -f set\t --help >/dev/null && echo completed',
        ],
        /completed\r?\n/,
      );
    },
  );

  const testWithFish = there('fish') ? test : test.skip;
  testWithFish('fish: commands with their descriptions, and files where nothing is offered', () => {
    const completed = (line: string): string[] =>
      execFileSync(
        'fish',
        [
          '--no-config',
          '-c',
          `holdfast completion fish | source; complete -C ${JSON.stringify(line)}`,
        ],
        { cwd: folder, env, encoding: 'utf8' },
      )
        .split('\n')
        .filter(Boolean);
    expect(completed('holdfast runner sche')).toEqual([
      'schema\tPrint the JSON Schema of a runner file, for editors',
    ]);
    expect(completed('holdfast set apply -f set')).toEqual(['sets.yaml']);
  });
});
