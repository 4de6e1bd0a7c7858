import { createInterface } from 'node:readline/promises';
import { CliError } from './exit.ts';
import type { Output } from './output.ts';

/**
 * Asks the user to confirm.
 * @param what - pending change: `drain 3 runners: …`
 * @throws CliError `usage` without a terminal, `failed` after a no, `interrupted` after Ctrl-C. In
 * all cases nothing was changed
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
    if (!/^y(es)?$/i.test(answer.trim()))
      throw new CliError('failed', `not confirmed, nothing was done: ${what}`);
  } catch (error) {
    if (interrupted.signal.aborted)
      throw new CliError('interrupted', 'interrupted: nothing was done', { cause: error });
    throw error;
  } finally {
    questions.close();
  }
}
