/** From the flags of `runner start` and `run`, and a file, to the one JSON object that the workflow takes. */
import { readFileSync } from 'node:fs';
import { CliError, type FieldError } from './exit.ts';

/** As commander hands them over. Durations stay strings: the workflow's own validation judges them. */
export interface RunnerFlags {
  readonly file?: string;
  readonly org?: string;
  readonly repo?: string;
  readonly enterprise?: string;
  readonly name?: string;
  readonly set?: string;
  readonly labels?: string;
  readonly static?: boolean;
  readonly ephemeral?: boolean;
  readonly credential?: string;
  readonly group?: string;
  readonly image?: string;
  readonly podNamespace?: string;
  readonly env?: readonly string[];
  readonly onEviction?: string;
  readonly jobTimeout?: string;
  readonly idleTimeout?: string;
  readonly registrationTimeout?: string;
  readonly pendingTimeout?: string;
  readonly unscheduledTimeout?: string;
  readonly provisioningTimeout?: string;
  readonly stopSignalTimeout?: string;
  readonly stopCleanupTimeout?: string;
  readonly drainTimeout?: string;
  readonly onTerm?: string;
  readonly supervisor?: string;
}

/** The flag behind each field of the input, for error messages. */
const FLAG_OF: Readonly<Record<string, string>> = {
  organization: '--org',
  repository: '--repo',
  enterprise: '--enterprise',
  name: '--name',
  set: '--set',
  labels: '--labels',
  ephemeral: '--static',
  credential: '--credential',
  runnerGroupId: '--group',
  image: '--image',
  namespace: '--pod-namespace',
  env: '--env',
  onEviction: '--on-eviction',
  'timeouts.jobTimeout': '--job-timeout',
  'timeouts.idle': '--idle-timeout',
  'timeouts.registration': '--registration-timeout',
  'timeouts.podPending': '--pending-timeout',
  'timeouts.podUnscheduled': '--unscheduled-timeout',
  'timeouts.provisioning': '--provisioning-timeout',
  'stop.signalTimeout': '--stop-signal-timeout',
  'stop.cleanupTimeout': '--stop-cleanup-timeout',
  'stop.drainTimeout': '--drain-timeout',
  onTerm: '--on-term',
  supervisor: '--supervisor',
};

type Json = Record<string, unknown>;

/**
 * The input that flags, a command line and a file's object describe together; flags win. Not validated yet.
 * @param command - what to run: without a scope a plain command that no CI server knows
 * @throws CliError usage
 */
export function inputFromFlags(flags: RunnerFlags, fromFile: Json = {}, command: readonly string[] = []): Json {
  const { organization, repository, enterprise, ...rest } = fromFile;
  // One scope flag stands for "this scope", whatever kind of scope the file names.
  const flagScope = defined({ organization: flags.org, repository: flags.repo, enterprise: flags.enterprise });
  const scope = Object.keys(flagScope).length > 0 ? flagScope : defined({ organization, repository, enterprise });
  return {
    ...rest,
    ...scope,
    ...(command.length === 0 ? {} : { command, ...(Object.keys(scope).length === 0 ? { ciServer: 'none' } : {}) }),
    ...defined({
      name: flags.name,
      set: flags.set,
      labels: flags.labels === undefined ? undefined : flags.labels.split(',').map((label) => label.trim()),
      ephemeral: flags.static ? false : flags.ephemeral,
      credential: flags.credential,
      runnerGroupId: flags.group === undefined ? undefined : groupId(flags.group),
      image: flags.image,
      namespace: flags.podNamespace,
      onEviction: flags.onEviction,
      onTerm: flags.onTerm,
      supervisor: flags.supervisor,
    }),
    ...nested(rest, 'env', flags.env ? environment(flags.env) : {}),
    ...nested(rest, 'timeouts', {
      jobTimeout: flags.jobTimeout,
      idle: flags.idleTimeout,
      registration: flags.registrationTimeout,
      podPending: flags.pendingTimeout,
      podUnscheduled: flags.unscheduledTimeout,
      provisioning: flags.provisioningTimeout,
    }),
    ...nested(rest, 'stop', { signalTimeout: flags.stopSignalTimeout, cleanupTimeout: flags.stopCleanupTimeout, drainTimeout: flags.drainTimeout }),
  };
}

/** The text of `-f`; `-` for stdin. @throws CliError usage */
export function readFileText(path: string): string {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8');
  } catch (error) {
    throw new CliError('usage', `--file: cannot read ${shownPath(path)}: ${reason(error)}; give a YAML or JSON file, or - for standard input`, { cause: error });
  }
}

export const shownPath = (path: string): string => (path === '-' ? 'standard input' : path);

/** Reads the object of `-f`: YAML or JSON (which is YAML). @throws CliError usage */
export async function readInputFile(path: string): Promise<Json> {
  const shown = shownPath(path);
  const text = readFileText(path);
  const { parse } = await import('yaml');
  let value: unknown;
  try {
    value = parse(text);
  } catch (error) {
    throw new CliError('usage', `--file: ${shown} is neither YAML nor JSON: ${reason(error)}`, { cause: error });
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    throw new CliError('usage', `--file: ${shown} must hold one object, such as {"organization": "acme"}`);
  }
  return value as Json;
}

/** One error for everything that is wrong with an input, fields named as in the file and as flags. */
export function invalidInput(errors: readonly FieldError[]): CliError {
  const fields = errors.map(({ field, message }) => ({ field: withFlags(field), message }));
  const [first] = fields;
  if (fields.length === 1 && first) return new CliError('invalid_input', fieldText(first));
  return new CliError('invalid_input', 'the runner was not started: its input is invalid', { fields });
}

/** `repository (--repo) must be "owner/repo"`. Most messages go on where the field's name ended; the others get a colon. */
export function fieldText({ field, message }: FieldError): string {
  return `${field}${/^[a-z]/.test(message) ? ' ' : ': '}${message}`;
}

function withFlags(field: string): string {
  const flags = field.split(', ').map((part) => FLAG_OF[part] ?? FLAG_OF[part.replace(/\..*$/, '')]).filter((flag) => flag !== undefined);
  return flags.length === 0 ? field : `${field} (${flags.join(', ')})`;
}

function nested(base: Json, key: string, values: Json): Json {
  const given = defined(values);
  if (Object.keys(given).length === 0) return {};
  const existing = base[key];
  if (existing !== undefined && (existing === null || typeof existing !== 'object' || Array.isArray(existing))) return {};
  return { [key]: { ...(existing as Json | undefined), ...given } };
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

function groupId(text: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text)) throw new CliError('usage', `--group: "${text}" is not the numeric id of a runner group (1 is the default group)`);
  return Number(text);
}

const defined = (object: Json): Json => Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));

const reason = (error: unknown): string => (error instanceof Error ? error.message : String(error));
