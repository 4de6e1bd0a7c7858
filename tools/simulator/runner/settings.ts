import { existsSync, readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { RUNNER_VERSION, type JitCredentialsFile, type JitRunnerFile } from './wire.ts';
import type { StopTimes } from './jobProcess.ts';

interface CommonSettings {
  version: string;
  /**
   * ACTIONS_RUNNER_RETURN_VERSION_DEPRECATED_EXIT_CODE: exits with 7 if the server rejects this
   * version.
   */
  deprecatedExitCode: boolean;
  hookStarted?: string;
  hookCompleted?: string;
  stopTimes: StopTimes;
}

/** For a runner that is to register itself. */
export type TokenSettings = CommonSettings & {
  mode: 'token';
  serverUrl: string;
  scope: string;
  name: string;
  token: string;
  labels: string[];
  group?: string;
  ephemeral: boolean;
  replace: boolean;
};

/** Of one that is registered. */
interface Registered {
  mode: 'registered';
  serverUrl: string;
  name: string;
  credential: string;
  ephemeral: boolean;
}

/** Settings of the runner, from its environment or its configuration. */
export type RunnerSettings = TokenSettings | (CommonSettings & Registered);

type Env = Readonly<Record<string, string | undefined>>;

/**
 * Reads the settings from the first of:
 * - ACTIONS_RUNNER_INPUT_JITCONFIG, or `--jitconfig X`
 * - RUNNER_TOKEN with RUNNER_URL, RUNNER_SCOPE (`orgs/acme`, `repos/acme/widgets`,
 * `enterprises/big`; default: the path of the URL, as for config.sh), RUNNER_NAME, RUNNER_LABELS
 * (comma-separated), RUNNER_GROUP, RUNNER_EPHEMERAL, RUNNER_REPLACE_EXISTING
 * - the files that the command of {@link readConfiguration} has written
 *
 * SIM_RUNNER_VERSION, SIM_RUNNER_INTERRUPT_MS and SIM_RUNNER_TERMINATE_MS are for tests.
 * @throws Error that names the missing or invalid setting
 */
export function readSettings(
  env: Env,
  argv: readonly string[],
  folder = process.cwd(),
): RunnerSettings {
  const common = commonSettings(env);
  const flag = argv.indexOf('--jitconfig');
  const jit = flag >= 0 ? argv[flag + 1] : env['ACTIONS_RUNNER_INPUT_JITCONFIG'];
  if (jit) return { ...common, ...registered(decodeJitConfig(jit)) };
  const token = env['RUNNER_TOKEN'];
  const address = env['RUNNER_URL'];
  if (!token && existsSync(join(folder, '.runner'))) {
    const parse = (name: string): unknown => JSON.parse(readFileSync(join(folder, name), 'utf8'));
    return {
      ...common,
      ...registered({
        runner: parse('.runner') as JitRunnerFile,
        credentials: parse('.credentials') as JitCredentialsFile,
      }),
    };
  }
  if (!token || !address)
    throw new Error(
      'Not configured. Run config.sh, or set ACTIONS_RUNNER_INPUT_JITCONFIG, or RUNNER_TOKEN and RUNNER_URL.',
    );
  const url = new URL(address);
  return {
    ...common,
    mode: 'token',
    serverUrl: url.origin,
    scope: scopeOf(env['RUNNER_SCOPE'] ?? url.pathname),
    name: env['RUNNER_NAME'] ?? hostname(),
    token,
    labels: (env['RUNNER_LABELS'] ?? '')
      .split(',')
      .map((label) => label.trim())
      .filter((label) => label !== ''),
    ...optional('group', env['RUNNER_GROUP']),
    ephemeral: env['RUNNER_EPHEMERAL'] === 'true',
    replace: env['RUNNER_REPLACE_EXISTING'] === 'true',
  };
}

/**
 * Reads the arguments of `config.sh`: `configure --url U [--token T] [--name N] [--labels L]
 * [--runnergroup G] [--ephemeral] [--disableupdate] [--replace] [--unattended]`. The token can also
 * be in ACTIONS_RUNNER_INPUT_TOKEN.
 * @throws Error as the official one, for a folder that is already configured and for missing
 * arguments
 */
export function readConfiguration(
  env: Env,
  argv: readonly string[],
  folder = process.cwd(),
): TokenSettings {
  if (existsSync(join(folder, '.runner'))) {
    throw new Error(
      "Cannot configure the runner because it is already configured. To reconfigure the runner, run 'config.cmd remove' or './config.sh remove' first.",
    );
  }
  const [text, flag] = [{ type: 'string' }, { type: 'boolean' }] as const;
  const options = {
    url: text,
    token: text,
    name: text,
    labels: text,
    runnergroup: text,
    ephemeral: flag,
    disableupdate: flag,
    replace: flag,
    unattended: flag,
  };
  const { values } = parseArgs({ args: [...argv], options });
  const token = env['ACTIONS_RUNNER_INPUT_TOKEN'] || values.token;
  if (!token || !values.url)
    throw new Error(
      `Invalid configuration provided for ${token ? 'url' : 'token'}. Terminating unattended configuration.`,
    );
  const given = {
    RUNNER_TOKEN: token,
    RUNNER_URL: values.url,
    RUNNER_NAME: values.name,
    RUNNER_LABELS: values.labels,
    RUNNER_GROUP: values.runnergroup,
  };
  const settings = readSettings(
    { ...env, ...given, RUNNER_SCOPE: undefined, ACTIONS_RUNNER_INPUT_JITCONFIG: undefined },
    [],
    folder,
  );
  if (settings.mode !== 'token') throw new Error('No token');
  return { ...settings, ephemeral: values.ephemeral === true, replace: values.replace === true };
}

function commonSettings(env: Env): CommonSettings {
  return {
    version: env['SIM_RUNNER_VERSION'] ?? RUNNER_VERSION,
    deprecatedExitCode: env['ACTIONS_RUNNER_RETURN_VERSION_DEPRECATED_EXIT_CODE'] === '1',
    ...optional('hookStarted', env['ACTIONS_RUNNER_HOOK_JOB_STARTED']),
    ...optional('hookCompleted', env['ACTIONS_RUNNER_HOOK_JOB_COMPLETED']),
    stopTimes: {
      interruptMs: Number(env['SIM_RUNNER_INTERRUPT_MS'] ?? 7500),
      terminateMs: Number(env['SIM_RUNNER_TERMINATE_MS'] ?? 2500),
    },
  };
}

function registered({
  runner,
  credentials,
}: {
  runner: JitRunnerFile;
  credentials: JitCredentialsFile;
}): Registered {
  return {
    mode: 'registered',
    serverUrl: runner.serverUrl,
    name: runner.agentName,
    credential: credentials.data.token,
    ephemeral: runner.ephemeral,
  };
}

const optional = <K extends string>(key: K, value: string | undefined): { [P in K]?: string } =>
  value ? ({ [key]: value } as { [P in K]?: string }) : {};

function scopeOf(path: string): string {
  const parts = path.split('/').filter((part) => part !== '');
  const [first] = parts;
  if (first === 'orgs' || first === 'repos' || first === 'enterprises') return parts.join('/');
  if (parts.length === 1) return `orgs/${first}`;
  if (parts.length === 2) return `repos/${parts.join('/')}`;
  throw new Error(
    `No scope: set RUNNER_SCOPE, or RUNNER_URL to the address of an organization, a repository or an enterprise (got path ${JSON.stringify(path)}).`,
  );
}

function decodeJitConfig(text: string): { runner: JitRunnerFile; credentials: JitCredentialsFile } {
  const parse = (base64: string | undefined): unknown =>
    JSON.parse(Buffer.from(base64 ?? '', 'base64').toString());
  try {
    const files = parse(text) as Record<string, string>;
    return {
      runner: parse(files['.runner']) as JitRunnerFile,
      credentials: parse(files['.credentials']) as JitCredentialsFile,
    };
  } catch {
    throw new Error('The JIT config cannot be read: it is not base64 of JSON.'); // without its content, which is secret
  }
}
