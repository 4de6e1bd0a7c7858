/**
 * Builds the input of the workflow from the options of `runner start` and `run`, and from a file.
 */
import { readFileSync } from 'node:fs';
// Do not import the index of the contract: printing the help must not load the Temporal SDK.
import {
  RUNNER_TIMEOUTS,
  STOP_TIMEOUTS,
  type RunnerInput,
  type RunnerTimeouts,
  type StopInput,
} from '../../core/contract/runnerInput.ts';
import { isObject } from '../../core/domain/isObject.ts';
import { CliError, type FieldError } from '../shared/exit.ts';
import { errorMessage } from '../../core/domain/errorMessage.ts';

/** Option of `runner start` and `run`, with the input field that it sets. */
interface RunnerFlag {
  /**
   * Option in commander's syntax. Its long name in camel case is its key in {@link RunnerFlags}.
   */
  readonly option: string;
  readonly field:
    keyof RunnerInput | `timeouts.${keyof RunnerTimeouts}` | `stop.${keyof StopInput}`;
  readonly help: string;
  /**
   * Converts the value of the option to that of the field. Durations stay strings, which are
   * validated with the input.
   * @default no conversion
   */
  readonly read?: (values: readonly string[]) => unknown;
}

/** All options, in the order of `--help`. */
export const RUNNER_FLAGS: readonly RunnerFlag[] = [
  {
    option: '--org <name>',
    field: 'organization',
    help: 'Register the runner with this organization',
  },
  {
    option: '--repo <owner/repo>',
    field: 'repository',
    help: 'Register the runner with this repository',
  },
  {
    option: '--enterprise <name>',
    field: 'enterprise',
    help: 'Register the runner with this enterprise',
  },
  {
    option: '--name <name>',
    field: 'name',
    help: 'Name; the workflow ID is runner-<name> or runner-<set>-<name> (default: generated)',
  },
  { option: '--set <name>', field: 'set', help: 'Set that the runner belongs to' },
  {
    option: '--labels <a,b>',
    field: 'labels',
    help: 'Labels, separated by commas (default: self-hosted)',
    read: ([text = '']) => text.split(',').map((label) => label.trim()),
  },
  {
    option: '--static',
    field: 'ephemeral',
    help: 'Run many jobs, until the runner is drained',
    read: () => false,
  },
  { option: '--ephemeral', field: 'ephemeral', help: 'Run one job (default)' },
  {
    option: '--credential <name>',
    field: 'credential',
    help: 'Credential of the worker (default: "default")',
  },
  {
    option: '--runner-group <name>',
    field: 'runnerGroup',
    help: 'Name of the runner group (default: the default group of the CI server)',
  },
  {
    option: '--runner-group-id <id>',
    field: 'runnerGroupId',
    help: 'ID of the runner group, instead of its name',
  },
  { option: '--image <image>', field: 'image', help: 'Image of the runner' },
  { option: '--pod-namespace <name>', field: 'namespace', help: 'Kubernetes namespace of the pod' },
  {
    option: '--env <NAME=value>',
    field: 'env',
    help: 'Environment variable NAME=value (repeatable); not for secrets, because it is kept in the history',
    read: environment,
  },
  {
    option: '--on-eviction <what>',
    field: 'onEviction',
    help: 'What to do when a busy runner loses its pod: fail, replace, or resume (plain commands only) (default: fail)',
  },
  {
    option: '--max-attempts <number>',
    field: 'maxAttempts',
    help: 'With --on-eviction resume: maximum number of attempts (default: 10)',
    read: ([text = '']) => (/^\d+$/.test(text) ? Number(text) : text),
  },
  {
    option: '--on-term <what>',
    field: 'onTerm',
    help: 'What SIGTERM does in the pod: stop, drain or checkpoint (default: stop)',
  },
  {
    option: '--supervisor <how>',
    field: 'supervisor',
    help: 'Where the supervisor comes from: inject, image or none (default: the setting of the worker)',
  },
  {
    option: '--job-timeout <duration>',
    field: 'timeouts.jobTimeout',
    help: `Timeout of one job (default: ${RUNNER_TIMEOUTS.jobTimeout})`,
  },
  {
    option: '--max-age <duration>',
    field: 'timeouts.maxAge',
    help: `With --on-eviction resume: timeout of all attempts together (default: ${RUNNER_TIMEOUTS.maxAge})`,
  },
  {
    option: '--idle-timeout <duration>',
    field: 'timeouts.idle',
    help: 'Drain the runner after it has been idle for this long (default: off)',
  },
  {
    option: '--registration-timeout <duration>',
    field: 'timeouts.registration',
    help: `Timeout from the start of the container to the registration (default: ${RUNNER_TIMEOUTS.registration})`,
  },
  {
    option: '--pending-timeout <duration>',
    field: 'timeouts.podPending',
    help: `Timeout from the creation of the pod to the start of its container (default: ${RUNNER_TIMEOUTS.podPending})`,
  },
  {
    option: '--unscheduled-timeout <duration>',
    field: 'timeouts.podUnscheduled',
    help: `Timeout from the creation of the pod to its scheduling (default: ${RUNNER_TIMEOUTS.podUnscheduled})`,
  },
  {
    option: '--provisioning-timeout <duration>',
    field: 'timeouts.provisioning',
    help: `Timeout for the creation of registration, Secret and pod together (default: ${RUNNER_TIMEOUTS.provisioning})`,
  },
  {
    option: '--stop-signal-timeout <duration>',
    field: 'stop.signalTimeout',
    help: `Grace period of the job when it is stopped (default: ${STOP_TIMEOUTS.signalTimeout})`,
  },
  {
    option: '--stop-cleanup-timeout <duration>',
    field: 'stop.cleanupTimeout',
    help: `Time for cleaning up after that (default: ${STOP_TIMEOUTS.cleanupTimeout})`,
  },
  {
    option: '--stop-grace-period <duration>',
    field: 'stop.gracePeriod',
    help: 'Grace period of a plain command, instead of these two',
  },
  {
    option: '--signal-target <target>',
    field: 'stop.target',
    help: 'Which processes get the signals of a stop: group, or process (only the command) (default: group; process with --stop-grace-period)',
  },
  {
    option: '--drain-timeout <duration>',
    field: 'stop.drainTimeout',
    help: 'With --on-term drain: how long the job may continue',
  },
];

/** Values of the options from commander, and the path of `-f`. */
export type RunnerFlags = Readonly<
  Record<string, string | boolean | readonly string[] | undefined>
> & { readonly file?: string };

const longName = (option: string): string => option.replace(/ .*/, '');
const keyOf = (option: string): string =>
  longName(option)
    .slice(2)
    .replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());

type Json = Record<string, unknown>;

/**
 * Returns the input from the options, a command and the object of a file. Options take precedence.
 * The result is not validated.
 * @param command - command to run. Without a scope, it runs without a CI server
 * @throws CliError `usage`
 */
export function inputFromFlags(
  flags: RunnerFlags,
  fromFile: Json = {},
  command: readonly string[] = [],
): Json {
  const given = fieldsOf(flags);
  const input = { ...fromFile };
  // A scope option replaces any scope of the file.
  if (SCOPES.some((scope) => scope in given)) for (const scope of SCOPES) delete input[scope];
  for (const [field, value] of Object.entries(given)) {
    const before = input[field];
    if (!isObject(value) || before === undefined) input[field] = value;
    // Validation rejects any other value than an object here.
    else if (isObject(before)) input[field] = { ...before, ...value };
  }
  if (command.length === 0) return input;
  return {
    ...input,
    command,
    ...(SCOPES.some((scope) => input[scope] !== undefined) ? {} : { ciServer: 'none' }),
  };
}

const SCOPES = ['organization', 'repository', 'enterprise'];

/** Returns the fields of the options, for example `timeouts.idle` as `{timeouts: {idle}}`. */
function fieldsOf(flags: RunnerFlags): Json {
  const fields: Json = {};
  for (const { option, field, read } of RUNNER_FLAGS) {
    const given = flags[keyOf(option)];
    if (given === undefined) continue;
    const value = read === undefined ? given : read([given].flat().map(String));
    const [group = '', part] = field.split('.');
    fields[group] =
      part === undefined ? value : { ...(fields[group] as Json | undefined), [part]: value };
  }
  return fields;
}

/**
 * Reads the text of `-f`; `-` is standard input.
 * @throws CliError `usage`
 */
export function readFileText(path: string): string {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8');
  } catch (error) {
    throw new CliError(
      'usage',
      `--file: failed to read ${displayPath(path)}: ${errorMessage(error)}; give a YAML or JSON file, or - for standard input`,
      { cause: error },
    );
  }
}

/** Returns the path of an input file for messages. `-` is shown as standard input. */
export const displayPath = (path: string): string => (path === '-' ? 'standard input' : path);

/**
 * Reads the object of `-f`, in YAML or JSON.
 * @param example - an example for the error message
 * @throws CliError `usage`
 */
export async function readInputFile(
  path: string,
  example = '{"organization": "acme"}',
): Promise<Json> {
  const shown = displayPath(path);
  const text = readFileText(path);
  const { yamlValue, YamlError } = await import('../../worker/settings/yamlDocuments.ts');
  let value: unknown;
  try {
    value = yamlValue(text);
  } catch (error) {
    if (!(error instanceof YamlError)) throw error;
    const [fault] = error.errors;
    throw new CliError(
      'usage',
      `--file: ${shown} ${fault === undefined ? error.message : `is neither YAML nor JSON: ${fault.message}`}`,
      { cause: error },
    );
  }
  if (!isObject(value))
    throw new CliError('usage', `--file: ${shown} must contain one object, such as ${example}`);
  return value;
}

/**
 * Returns one error for all errors of an input. It names the fields as in the file and as options.
 */
export function invalidInput(errors: readonly FieldError[]): CliError {
  const fields = errors.map((error) => ({ ...error, field: withFlags(error.field) }));
  const [first] = fields;
  if (fields.length === 1 && first) return new CliError('invalid_input', formatFieldError(first));
  return new CliError('invalid_input', 'the input is invalid; the runner was not started', {
    fields,
  });
}

/**
 * Formats an error, for example `repository (--repo) must be "owner/repo"`. A message that does not
 * continue the sentence follows a colon.
 */
export function formatFieldError({ field, message }: FieldError): string {
  return `${field}${/^[a-z]/.test(message) ? ' ' : ': '}${message}`;
}

/**
 * Adds the option to a field: `timeouts.idle (--idle-timeout)`. Parts of a field, such as
 * `env.PATH`, have its option.
 */
function withFlags(field: string): string {
  const flags = field.split(', ').flatMap((part) => {
    const flag =
      RUNNER_FLAGS.find((each) => each.field === part) ??
      RUNNER_FLAGS.find((each) => each.field === part.replace(/\..*$/, ''));
    return flag === undefined ? [] : [longName(flag.option)];
  });
  return flags.length === 0 ? field : `${field} (${flags.join(', ')})`;
}

function environment(pairs: readonly string[]): Json {
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf('=');
      if (at < 1) throw new CliError('usage', `--env: "${pair}" must be NAME=value`);
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
}
