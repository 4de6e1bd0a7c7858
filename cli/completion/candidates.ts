/** Candidates for shell completion, from the definitions of the commands. */
import type { Command, Option } from 'commander';
import { RUNNER_OUTCOMES, RUNNER_PHASES } from '../../core/contract/index.ts';

/** Value that can complete the current word, with a description for the shell. */
export interface Candidate {
  readonly value: string;
  readonly description: string;
}

/** Kind of object whose IDs or names complete the word. The caller reads them from Temporal. */
export type Kind = 'runner' | 'set' | 'job';

/** Candidates for the word that is being typed. */
export interface Completion {
  readonly candidates: readonly Candidate[];
  /** Kind of object whose IDs are additional candidates. */
  readonly ids?: Kind;
  /** Values of the options already on the line, by attribute name. */
  readonly flags: Readonly<Record<string, string>>;
}

/** Values of options that the commands validate themselves. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  phase: RUNNER_PHASES,
  outcome: RUNNER_OUTCOMES,
};

/**
 * Returns the candidates for a command line.
 * @param words - the words after the program name. The last one is being typed and may be empty
 */
export function completeWords(program: Command, words: readonly string[]): Completion {
  const { command, waiting, positionals, flags, over } = walkCommands(program, words.slice(0, -1));
  const typed = words.at(-1) ?? '';
  const only = (candidates: readonly Candidate[]): Candidate[] =>
    candidates.filter(({ value }) => value.startsWith(typed));
  if (over) return { candidates: [], flags };
  if (waiting !== undefined)
    return {
      candidates: only(valuesOf(waiting)),
      flags,
      ...(waiting.attributeName() === 'set' ? { ids: 'set' as const } : {}),
    };
  const [, name, prefix] = /^(--[\w-]+)(=)/.exec(typed) ?? [];
  const joined = name === undefined ? undefined : findOption(command, name);
  if (joined !== undefined)
    return {
      candidates: only(
        valuesOf(joined).map((each) => ({ ...each, value: `${name}${prefix}${each.value}` })),
      ),
      flags,
    };
  if (typed.startsWith('-')) return { candidates: only(optionsOf(command)), flags };
  const commands =
    positionals > 0
      ? []
      : command
          .createHelp()
          .visibleCommands(command)
          .map((each) => ({ value: each.name(), description: each.description() }));
  const argument = command.registeredArguments[positionals];
  const choices = (argument?.argChoices ?? []).map((value) => ({ value, description: '' }));
  const ids = argument === undefined ? undefined : kindOf(command, argument.name());
  return {
    candidates: only([...commands, ...choices]),
    flags,
    ...(ids === undefined ? {} : { ids }),
  };
}

interface Walked {
  command: Command;
  /** Option whose value is being typed. */
  waiting: Option | undefined;
  /** Number of arguments before the current word. */
  positionals: number;
  flags: Record<string, string>;
  /** Whether the words follow `--`, where any argument may appear. */
  over: boolean;
}

function walkCommands(program: Command, words: readonly string[]): Walked {
  const at: Walked = {
    command: program,
    waiting: undefined,
    positionals: 0,
    flags: {},
    over: false,
  };
  for (const word of words) {
    if (word === '--') return { ...at, over: true };
    // bash passes the sign between an option and its value as a separate word.
    if (word === '=') continue;
    if (at.waiting !== undefined) {
      at.flags[at.waiting.attributeName()] = word;
      at.waiting = undefined;
    } else if (word.startsWith('-')) {
      const [name = '', value] = word.split(/=(.*)/s);
      const option = findOption(at.command, name);
      if (option?.required !== true) continue;
      if (value === undefined) at.waiting = option;
      else at.flags[option.attributeName()] = value;
    } else {
      const inner =
        at.positionals === 0
          ? at.command.commands.find(
              (each) => each.name() === word || each.aliases().includes(word),
            )
          : undefined;
      if (inner === undefined) at.positionals += 1;
      else at.command = inner;
    }
  }
  return at;
}

/** Returns the command and its parents, whose options also apply to it. */
function ancestors(command: Command): Command[] {
  return command.parent === null ? [command] : [command, ...ancestors(command.parent)];
}

function optionsOf(command: Command): Candidate[] {
  const all = ancestors(command)
    .flatMap((each) => each.createHelp().visibleOptions(each))
    .map(({ long, short, description }) => ({ value: long ?? short ?? '', description }));
  // Every command has --help. Offer it once.
  return [...new Map(all.map((each) => [each.value, each])).values()];
}

function findOption(command: Command, name: string): Option | undefined {
  return ancestors(command)
    .flatMap(({ options }) => options)
    .find(({ long, short }) => name === long || name === short);
}

function valuesOf(option: Option): Candidate[] {
  return (option.argChoices ?? VALUES[option.attributeName()] ?? []).map((value) => ({
    value,
    description: '',
  }));
}

function kindOf({ parent }: Command, argument: string): Kind | undefined {
  const group = parent?.name();
  if (group === 'runner' || group === 'job') return argument === 'id' ? group : undefined;
  return group === 'set' && argument === 'name' ? 'set' : undefined;
}
