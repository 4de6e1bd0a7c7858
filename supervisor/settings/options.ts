import { parseArgs } from 'node:util';
import {
  RUNNER_KIND_NAMES,
  type RunnerKindName,
} from '../../core/domain/runnerKinds/runnerKinds.ts';
import { parseStopSignals } from '../../core/domain/stopSignals.ts';
import { parseDuration } from './duration.ts';
import type { OnTerm, StopPolicy, SignalTarget } from '../signals/stopPolicy.ts';
import { SETTINGS, type Setting, type SettingName } from './settings.ts';

/** Command to run, with its options. Absent paths are not used. */
export interface Options {
  readonly command: readonly [string, ...string[]];
  readonly plan: StopPolicy;
  readonly runnerKind: RunnerKindName;
  readonly ephemeral: boolean;
  readonly cleanupCommand?: readonly string[];
  readonly probes?: { readonly port: number; readonly host?: string };
  readonly startFile?: string;
  readonly logFile?: string;
  /** Whether the command has one descriptor for standard output and standard error. */
  readonly mergeOutput: boolean;
  /** Directory that steps pass on, and the directory of its snapshots. */
  readonly shared?: { readonly dir: string; readonly snapshots: string };
  readonly marker?: string;
  readonly terminationLog?: string;
  readonly runDir?: string;
  readonly stopReasonSource?: string;
  readonly stateDir?: string;
  readonly attempt: number;
  readonly assumeDedicatedPid1: boolean;
}

/** Error with all problems of the options. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('; '));
    this.problems = problems;
  }
}

/**
 * Reads options and environment. An option takes precedence over its variable.
 *
 * @returns undefined if help is requested
 * @throws UsageError with all problems
 */
export function readOptions(argv: readonly string[], env: NodeJS.ProcessEnv): Options | undefined {
  const { flags, command } = split(argv);
  if (flags['help'] === true) return undefined;
  const problems: string[] = [];
  const reader = settingsReader(flags, env, problems);
  const { text, read } = reader;
  if (command[0] === undefined || command[0] === '')
    problems.push('nothing to run: supervisor [options] -- COMMAND [ARGUMENTS]');
  const { plan, cleanupCommand } = stopPolicyOf(reader);
  const [sharedDir, snapshots] = [text('shared-dir'), text('shared-snapshots')];
  if ((sharedDir === undefined) !== (snapshots === undefined))
    problems.push('--shared-dir and --shared-snapshots: each needs the other');
  const port = read('probe-port', wholeNumber(0, 65_535));
  const host = text('probe-host');
  const options = {
    command: command as unknown as Options['command'],
    plan,
    runnerKind: read('runner-kind', oneOf<RunnerKindName>(...RUNNER_KIND_NAMES)) ?? 'command',
    ephemeral: text('one-job') === '1',
    mergeOutput: text('merge-output') === '1',
    ...defined({
      cleanupCommand,
      startFile: text('start-file'),
      logFile: text('log-file'),
      marker: text('marker'),
      terminationLog: text('termination-log'),
      runDir: text('run-dir'),
    }),
    ...defined({ stopReasonSource: text('stop-reason-source'), stateDir: text('state-dir') }),
    ...(sharedDir === undefined || snapshots === undefined
      ? {}
      : { shared: { dir: sharedDir, snapshots } }),
    ...(port === undefined ? {} : { probes: { port, ...defined({ host }) } }),
    attempt: read('attempt', wholeNumber(1, Number.MAX_SAFE_INTEGER)) ?? 1,
    assumeDedicatedPid1: text('assume-dedicated-pid1') === '1',
  };
  if (problems.length > 0) throw new UsageError(problems);
  return options;
}

/** Access to the settings of one start of the supervisor. */
interface SettingsReader {
  /** Returns the value of a setting, or its default. */
  readonly text: (name: SettingName) => string | undefined;
  /** Returns the parsed value. An invalid value is `undefined` and one of the problems. */
  readonly read: <T>(name: SettingName, parse: (value: string) => T) => T | undefined;
}

/** @param problems - receives a problem for each invalid value that is read */
function settingsReader(
  flags: Readonly<Record<string, string | boolean | undefined>>,
  env: NodeJS.ProcessEnv,
  problems: string[],
): SettingsReader {
  const settingOf = (name: SettingName): Setting =>
    SETTINGS.find(({ flag }) => flag === name) ?? fail(name);
  const text = (name: SettingName): string | undefined => {
    const setting = settingOf(name);
    const given = flags[name] ?? env[setting.env];
    return typeof given === 'string' && given !== '' ? given : setting.default;
  };
  const read = <T>(name: SettingName, parse: (value: string) => T): T | undefined => {
    const value = text(name);
    if (value === undefined) return undefined;
    try {
      return parse(value);
    } catch (error) {
      problems.push(`--${name} (${settingOf(name).env}): ${(error as Error).message}`);
      return undefined;
    }
  };
  return { text, read };
}

function stopPolicyOf({ read }: SettingsReader): {
  readonly plan: StopPolicy;
  readonly cleanupCommand: readonly string[] | undefined;
} {
  const timeoutMs = read('timeout', parseDuration);
  const signalTimeoutMs = read('signal-timeout', parseDuration) ?? 0;
  const cleanupCommand = read('cleanup-command', parseCommand);
  const plan: StopPolicy = {
    ...(timeoutMs ? { timeoutMs } : {}),
    signalTimeoutMs,
    cleanupTimeoutMs: read('cleanup-timeout', parseDuration) ?? 0,
    drainTimeoutMs: read('drain-timeout', parseDuration) ?? 0,
    onTerm: read('on-term', oneOf<OnTerm>('drain', 'stop', 'checkpoint')) ?? 'stop',
    stopSignals: read('stop-signals', (value) => parseStopSignals(value, signalTimeoutMs)) ?? [],
    signalTarget: read('signal-target', oneOf<SignalTarget>('group', 'process')) ?? 'group',
    cleanup: cleanupCommand !== undefined,
  };
  return { plan, cleanupCommand };
}

/**
 * Splits the supervisor's options, which end at `--`, from the command. If the first argument is
 * not an option, there are no options: the command's own options are never parsed.
 */
function split(argv: readonly string[]): {
  flags: Record<string, string | boolean | undefined>;
  command: readonly string[];
} {
  if (argv[0] !== undefined && !argv[0].startsWith('-')) return { flags: {}, command: argv };
  const dashes = argv.indexOf('--');
  const end = dashes >= 0 ? dashes : argv.length;
  const types = Object.fromEntries(SETTINGS.map(({ flag }) => [flag, { type: 'string' as const }]));
  try {
    const { values } = parseArgs({
      args: argv.slice(0, end),
      options: { ...types, help: { type: 'boolean', short: 'h' } },
      strict: true,
    });
    return { flags: values, command: argv.slice(end + 1) };
  } catch (error) {
    throw new UsageError([(error as Error).message]);
  }
}

function parseCommand(text: string): string[] {
  if (!text.trimStart().startsWith('[')) return text.split(' ').filter((word) => word !== '');
  const words: unknown = JSON.parse(text);
  if (
    !Array.isArray(words) ||
    words.length === 0 ||
    !words.every((word) => typeof word === 'string')
  )
    throw new TypeError('not a JSON array of strings');
  return words;
}

function oneOf<T extends string>(...allowed: readonly T[]): (value: string) => T {
  return (value) => {
    const found = allowed.find((word) => word === value);
    if (found === undefined) throw new RangeError(`"${value}" is not one of ${allowed.join(', ')}`);
    return found;
  };
}

function wholeNumber(least: number, max: number): (value: string) => number {
  return (value) => {
    const number = Number(value);
    if (!/^\d+$/.test(value) || number < least || number > max)
      throw new RangeError(`"${value}" is not a whole number from ${least} to ${max}`);
    return number;
  };
}

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };
function defined<T extends object>(record: T): Defined<T> {
  return Object.fromEntries(
    Object.entries(record).filter(([, value]) => value !== undefined),
  ) as Defined<T>;
}

function fail(name: string): never {
  throw new Error(`no setting ${name}`);
}
