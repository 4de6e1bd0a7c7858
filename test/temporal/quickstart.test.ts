/** The blocks of docs/quickstart.md that need nothing but this machine, run as they stand there. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify, stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { down } from '../../tools/lab/lab.ts';
import { resolveBinary } from '../../tools/lab/resolve.ts';
import { describeIf } from '../support/lab.ts';
import { quickstartBlock } from '../support/quickstart.ts';

await describeIf(
  'docs/quickstart.md',
  async () => await resolveBinary('temporal'),
  { temporal: true },
  () => {
    let folder: string;
    let stateDir: string;
    beforeEach(async () => {
      folder = await mkdtemp(join(tmpdir(), 'holdfast-quickstart-'));
      stateDir = join(folder, 'lab');
    });
    afterEach(async () => {
      await down({ stateDir, purge: true });
      await rm(folder, { recursive: true, force: true });
    }, 60_000);

    // What it installs is what runs this test.
    const block = (name: string): string => quickstartBlock(name).replace(/^npm ci$/m, '');

    /** In a terminal, whose shell has job control; the first command that fails ends it. What it leaves running holds the terminal open. */
    async function run(script: string): Promise<string> {
      // Others may have the usual ports.
      const env = {
        PATH: process.env['PATH'],
        HOME: process.env['HOME'],
        HOLDFAST_LAB_DIR: stateDir,
        HOLDFAST_STATE_DIR: join(folder, 'worker'),
        HOLDFAST_HTTP_ADDRESS: '127.0.0.1:0',
      };
      const file = join(folder, 'block.sh');
      await writeFile(file, script);
      const { stdout } = await promisify(execFile)(
        'script',
        ['--quiet', '--return', '--command', `bash -em ${file}`, '/dev/null'],
        { env, signal: AbortSignal.timeout(100_000), maxBuffer: 2 ** 26 },
      );
      return stdout.replaceAll('\r', '');
    }

    test('a first runner, with only Temporal: it runs, is shown, and leaves nothing', async () => {
      const said = await run(
        `${block('runner')}\n${block('runner, end')}\necho left: $(ls "$HOLDFAST_LAB_DIR")`,
      );
      // As the command printed it, on a line of its own; and before the verdict.
      expect(stripVTControlCharacters(said)).toMatch(
        /from a runner$[\s\S]*runner-hello succeeded: /m,
      );
      expect(said).toMatch(
        /runner-hello succeeded: The command exited with code 0\.[\s\S]*Status: +completed[\s\S]*Outcome: +succeeded[\s\S]*left: lock logs\n$/,
      );
    }, 120_000);
  },
);
