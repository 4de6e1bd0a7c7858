/** From the flags of `runner start` and `run`, and a file, to the one JSON object that the workflow takes. */
import { readFileSync } from 'node:fs';
// Not the contract's index: what prints the help must not load Temporal's SDK.
import {
  RUNNER_TIMEOUTS,
  STOP_TIMEOUTS,
  type RunnerInput,
  type RunnerTimeouts,
  type StopInput,
} from '../../core/contract/runnerInput.ts';
import { isObject } from '../../core/domain/isObject.ts';
import { CliError, type FieldError } from '../shared/exit.ts';

/** An option of `runner start` and `run`, and the field of the input that it fills. */
interface RunnerFlag {
  /** As commander reads it; its long name in camel case is the key in {@link RunnerFlags}. */
  readonly option: string;
  readonly field:
    keyof RunnerInput | `timeouts.${keyof RunnerTimeouts}` | `stop.${keyof StopInput}`;
  readonly help: string;
  /** The field's value, from the option's. Durations stay strings: the validation of the input judges them. @default as it is */
  readonly read?: (values: readonly string[]) => unknown;
}

/** In the order in which `--help` lists them. */
export const RUNNER_FLAGS: readonly RunnerFlag[] = [
  { option: '--org <name>', field: 'organization', help: 'register with this organisation' },
  { option: '--repo <owner/repo>', field: 'repository', help: 'register with this repository' },
  { option: '--enterprise <name>', field: 'enterprise', help: 'register with this enterprise' },
  {
    option: '--name <name>',
    field: 'name',
    help: 'the workflow is runner-<name>, or runner-<set>-<name> (default: a generated name)',
  },
  { option: '--set <name>', field: 'set', help: 'the set it belongs to' },
  {
    option: '--labels <a,b>',
    field: 'labels',
    help: 'its labels (default: self-hosted)',
    read: ([text = '']) => text.split(',').map((label) => label.trim()),
  },
  {
    option: '--static',
    field: 'ephemeral',
    help: 'takes many jobs until it is drained',
    read: () => false,
  },
  { option: '--ephemeral', field: 'ephemeral', help: 'takes one job (the default)' },
  {
    option: '--credential <name>',
    field: 'credential',
    help: "a credential of the worker's settings (default: default)",
  },
  {
    option: '--runner-group <name>',
    field: 'runnerGroup',
    help: "name of the runner group (default: the CI server's default group)",
  },
  {
    option: '--runner-group-id <id>',
    field: 'runnerGroupId',
    help: 'in place of its name: its id',
  },
  { option: '--image <image>', field: 'image', help: "the runner's image" },
  { option: '--pod-namespace <name>', field: 'namespace', help: 'Kubernetes namespace of the pod' },
  {
    option: '--env <NAME=value>',
    field: 'env',
    help: 'environment of the runner, repeatable; not for secrets: it is kept in the history',
    read: environment,
  },
  {
    option: '--on-eviction <what>',
    field: 'onEviction',
    help: 'when a busy runner loses its pod: fail, replace, or resume for a plain command (default: fail)',
  },
  {
    option: '--max-attempts <number>',
    field: 'maxAttempts',
    help: 'with --on-eviction resume: how often it is tried in all (default: 10)',
    read: ([text = '']) => (/^\d+$/.test(text) ? Number(text) : text),
  },
  {
    option: '--on-term <what>',
    field: 'onTerm',
    help: 'what SIGTERM means in the pod: stop, drain or checkpoint (default: stop)',
  },
  {
    option: '--supervisor <how>',
    field: 'supervisor',
    help: 'how the supervisor gets into the pod: inject, image or none (default: as the worker is set)',
  },
  {
    option: '--job-timeout <duration>',
    field: 'timeouts.jobTimeout',
    help: `of one job (default: ${RUNNER_TIMEOUTS.jobTimeout})`,
  },
  {
    option: '--max-age <duration>',
    field: 'timeouts.maxAge',
    help: `with --on-eviction resume: of the whole life (default: ${RUNNER_TIMEOUTS.maxAge})`,
  },
  {
    option: '--idle-timeout <duration>',
    field: 'timeouts.idle',
    help: 'drain it when it is idle for so long (default: off)',
  },
  {
    option: '--registration-timeout <duration>',
    field: 'timeouts.registration',
    help: `from the container's start (default: ${RUNNER_TIMEOUTS.registration})`,
  },
  {
    option: '--pending-timeout <duration>',
    field: 'timeouts.podPending',
    help: `from the pod's creation to the container's start (default: ${RUNNER_TIMEOUTS.podPending})`,
  },
  {
    option: '--unscheduled-timeout <duration>',
    field: 'timeouts.podUnscheduled',
    help: `from the pod's creation to a node (default: ${RUNNER_TIMEOUTS.podUnscheduled})`,
  },
  {
    option: '--provisioning-timeout <duration>',
    field: 'timeouts.provisioning',
    help: `for registration, Secret and pod together (default: ${RUNNER_TIMEOUTS.provisioning})`,
  },
  {
    option: '--stop-signal-timeout <duration>',
    field: 'stop.signalTimeout',
    help: `the job's grace when it is stopped (default: ${STOP_TIMEOUTS.signalTimeout})`,
  },
  {
    option: '--stop-cleanup-timeout <duration>',
    field: 'stop.cleanupTimeout',
    help: `after that, for cleaning up (default: ${STOP_TIMEOUTS.cleanupTimeout})`,
  },
  {
    option: '--stop-grace-period <duration>',
    field: 'stop.gracePeriod',
    help: 'in place of these two, of a plain command: the grace of a step',
  },
  {
    option: '--signal-target <whom>',
    field: 'stop.target',
    help: "who gets a stop's signals: group, or process, the command alone (default: group; process with --stop-grace-period)",
  },
  {
    option: '--drain-timeout <duration>',
    field: 'stop.drainTimeout',
    help: 'with --on-term drain: how long the job may go on',
  },
];

/** The options' values as commander hands them over, and the path of `-f`. */
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
 * The input that flags, a command line and a file's object describe together; flags win. Not validated yet.
 * @param command - what to run: without a scope a plain command that no CI server knows
 * @throws CliError usage
 */
export function inputFromFlags(
  flags: RunnerFlags,
  fromFile: Json = {},
  command: readonly string[] = [],
): Json {
  const given = fieldsOf(flags);
  const input = { ...fromFile };
  // One scope flag stands for "this scope", whatever kind of scope the file names.
  if (SCOPES.some((scope) => scope in given)) for (const scope of SCOPES) delete input[scope];
  for (const [field, value] of Object.entries(given)) {
    const before = input[field];
    if (!isObject(value) || before === undefined) input[field] = value;
    // What the file has in its place, if it is no object, is for validation to refuse.
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

/** The fields that flags fill, `timeouts.idle` as `{timeouts: {idle}}`. */
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

/** The text of `-f`; `-` for stdin. @throws CliError usage */
export function readFileText(path: string): string {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8');
  } catch (error) {
    throw new CliError(
      'usage',
      `--file: cannot read ${displayPath(path)}: ${reason(error)}; give a YAML or JSON file, or - for standard input`,
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
    throw new CliError('usage', `--file: ${shown} must hold one object, such as ${example}`);
  return value;
}

/** One error for everything that is wrong with an input, fields named as in the file and as flags. */
export function invalidInput(errors: readonly FieldError[]): CliError {
  const fields = errors.map((error) => ({ ...error, field: withFlags(error.field) }));
  const [first] = fields;
  if (fields.length === 1 && first) return new CliError('invalid_input', formatFieldError(first));
  return new CliError('invalid_input', 'the runner was not started: its input is invalid', {
    fields,
  });
}

/** `repository (--repo) must be "owner/repo"`. Most messages go on where the field's name ended; the others get a colon. */
export function formatFieldError({ field, message }: FieldError): string {
  return `${field}${/^[a-z]/.test(message) ? ' ' : ': '}${message}`;
}

/** `timeouts.idle (--idle-timeout)`; of what is inside a field, such as `env.PATH`, the field's own flag. */
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
      if (at < 1) throw new CliError('usage', `--env: "${pair}" is not NAME=value`);
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
}

const reason = (error: unknown): string => (error instanceof Error ? error.message : String(error));
