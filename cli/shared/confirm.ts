import { createInterface } from 'node:readline/promises';
import { CliError } from './exit.ts';
import type { Output } from './output.ts';

/**
 * Asks a person whether to go on.
 * @param what - what would be done: `drain 3 runners: …`
 * @throws CliError `usage` where nobody can answer, `failed` on a no, `interrupted` on Ctrl-C: nothing was done
 */
export async function confirm(output: Output, what: string): Promise<void> {
  if (!output.terminal.interactive || output.json)
    throw new CliError('usage', `would ${what}; add --yes to do it`);
  const questions = createInterface({ input: process.stdin, output: process.stderr });
  const interrupted = new AbortController();
  questions.once('SIGINT', () => interrupted.abort());
  try {
    output.note('confirm', what);
    const answer = await questions.question('go on? [y/N] ', { signal: interrupted.signal });
    if (!/^y(es)?$/i.test(answer.trim())) throw new CliError('failed', 'nothing was done');
  } catch (error) {
    if (interrupted.signal.aborted)
      throw new CliError('interrupted', 'interrupted: nothing was done', { cause: error });
    throw error;
  } finally {
    questions.close();
  }
}
