import { execFile } from 'node:child_process';
import { delimiter } from 'node:path';
import { promisify } from 'node:util';
import { ComponentUnavailableError } from '../../tools/lab/lab.ts';

/**
 * Returns the folder of a Go module's files.
 * @param module - `path@version`
 * @throws ComponentUnavailableError if Go or the module is not available
 */
export async function goModuleFolder(module: string): Promise<string> {
  const PATH = [process.env['PATH'] ?? '', '/usr/local/go/bin'].join(delimiter);
  const { stdout } = await promisify(execFile)('go', ['mod', 'download', '-json', module], {
    env: { ...process.env, GOFLAGS: '', PATH },
  }).catch((error: unknown) => {
    throw new ComponentUnavailableError(
      'kubernetes',
      `${module} cannot be had: install Go >= 1.25`,
      error,
    );
  });
  return (JSON.parse(stdout) as { Dir: string }).Dir;
}
