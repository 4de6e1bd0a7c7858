import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { LabState } from '../../tools/lab/lab.ts';
import { resolveBinary } from '../../tools/lab/resolve.ts';
import { PROJECT } from './markdown.ts';
import { quickstartBlock } from './quickstart.ts';

const TOOLS = ['kubectl', 'helm', 'temporal'] as const;

/**
 * Runs the blocks of docs/quickstart.md that need a cluster, in a folder with a checkout's
 * `deploy/`, as an administrator of the lab's cluster.
 */
export class QuickstartShell {
  readonly #folder = mkdtempSync(join(tmpdir(), 'holdfast-walk-'));
  readonly #env: NodeJS.ProcessEnv;

  private constructor({ kubernetes, temporal }: LabState) {
    this.#env = {
      PATH: `${join(this.#folder, 'bin')}:${process.env['PATH'] ?? ''}`,
      HOME: this.#folder,
      KUBECONFIG: kubernetes?.kubeconfig,
      TEMPORAL_ADDRESS: temporal?.address,
      TEMPORAL_NAMESPACE: temporal?.namespace,
    };
  }

  /** @throws ComponentUnavailableError */
  static async open(lab: LabState): Promise<QuickstartShell> {
    const shell = new QuickstartShell(lab);
    mkdirSync(join(shell.#folder, 'bin'));
    for (const tool of TOOLS)
      symlinkSync(
        await resolveBinary(tool, { progress: (line) => process.stderr.write(`[lab] ${line}\n`) }),
        join(shell.#folder, 'bin', tool),
      );
    symlinkSync(join(PROJECT, 'deploy'), join(shell.#folder, 'deploy'));
    return shell;
  }

  write(file: string, text: string): void {
    writeFileSync(join(this.#folder, file), text);
  }

  read(file: string): string {
    return readFileSync(join(this.#folder, file), 'utf8');
  }

  /**
   * Runs a block until its first failing command, in a shell of its own with the functions of
   * earlier blocks.
   * @param edit - changes for this machine
   * @returns the output
   * @throws Error with the output
   */
  async run(block: string, edit: (script: string) => string = (script) => script): Promise<string> {
    const functions = quickstartBlock('cluster, look')
      .split('\n')
      .filter((line) => /^\w+\(\) \{/.test(line));
    const script = [...functions, edit(quickstartBlock(block))].join('\n');
    const { stdout, stderr } = await promisify(execFile)('bash', ['-e', '-c', script], {
      cwd: this.#folder,
      env: this.#env,
      maxBuffer: 2 ** 26,
    });
    return stdout + stderr;
  }

  close(): void {
    rmSync(this.#folder, { recursive: true });
  }
}
