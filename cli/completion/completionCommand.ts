/**
 * `holdfast completion bash|zsh|fish`, and the hidden command of its scripts: `holdfast complete --
 * WORDS…`.
 */
import { Argument, type Command } from 'commander';
import type { CommandContext } from '../shared/commandContext.ts';
import { stripControlCharacters } from '../../core/domain/displayText.ts';
import { SCRIPTS, type Shell } from './scripts.ts';
import { isShellWord } from './shellWord.ts';

/** Maximum length of a description (characters). Shells show it next to the value. */
const MAX_DESCRIBED = 80;

/**
 * Adds `holdfast completion`, which prints the script of a shell, and the hidden `complete`, which
 * the script calls.
 */
export function addCompletionCommands(program: Command, { terminal }: CommandContext): void {
  program
    .command('completion')
    .description('Print the shell completion script')
    .addArgument(new Argument('<shell>', 'Shell of the script').choices(Object.keys(SCRIPTS)))
    .addHelpText(
      'after',
      '\nExamples:\n  $ source <(holdfast completion bash)\n  $ source <(holdfast completion zsh)\n  $ holdfast completion fish | source',
    )
    .action((shell: Shell) => void terminal.stdout.write(SCRIPTS[shell]));
  program
    .command('complete', { hidden: true })
    .argument('[words...]')
    .action(async (words: string[]) => {
      const { completeWords } = await import('./candidates.ts');
      const { candidates, ids, flags } = completeWords(program, words);
      const typed = words.at(-1) ?? '';
      const found =
        ids === undefined ? [] : await (await import('./ids.ts')).findIds(ids, flags, terminal.env);
      const fitting = found.filter(({ value }) => value.startsWith(typed) && isShellWord(value));
      const lines = [...candidates, ...fitting].map(
        ({ value, description }) =>
          `${stripControlCharacters(value)}\t${stripControlCharacters(description).slice(0, MAX_DESCRIBED)}`,
      );
      if (lines.length > 0) terminal.stdout.write(`${lines.join('\n')}\n`);
    });
}
