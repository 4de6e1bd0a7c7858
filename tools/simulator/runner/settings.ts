import { hostname } from 'node:os';
import { RUNNER_VERSION, type JitCredentialsFile, type JitRunnerFile } from './wire.ts';
import type { StopTimes } from './job-process.ts';

/** What the runner is told by its environment. */
export type RunnerSettings = {
  version: string;
  /** ACTIONS_RUNNER_RETURN_VERSION_DEPRECATED_EXIT_CODE: exit 7 when the server refuses this version. */
  deprecatedExitCode: boolean;
  hookStarted?: string;
  hookCompleted?: string;
  stopTimes: StopTimes;
} & (
  | { mode: 'jit'; serverUrl: string; name: string; credential: string; ephemeral: true }
  | { mode: 'token'; serverUrl: string; scope: string; name: string; token: string; labels: string[]; group?: string; ephemeral: boolean; replace: boolean }
);

type Env = Readonly<Record<string, string | undefined>>;

/**
 * Reads them: ACTIONS_RUNNER_INPUT_JITCONFIG or `--jitconfig X`; else RUNNER_TOKEN with RUNNER_URL and RUNNER_SCOPE
 * (`orgs/acme`, `repos/acme/widgets`, `enterprises/big`; without it the scope is the URL's path, as for config.sh),
 * RUNNER_NAME, RUNNER_LABELS (comma-separated), RUNNER_GROUP, RUNNER_EPHEMERAL, RUNNER_REPLACE_EXISTING.
 * SIM_RUNNER_VERSION, SIM_RUNNER_INTERRUPT_MS and SIM_RUNNER_TERMINATE_MS are for tests.
 * @throws Error that names what is missing or wrong
 */
export function readSettings(env: Env, argv: readonly string[]): RunnerSettings {
  const common = {
    version: env['SIM_RUNNER_VERSION'] ?? RUNNER_VERSION,
    deprecatedExitCode: env['ACTIONS_RUNNER_RETURN_VERSION_DEPRECATED_EXIT_CODE'] === '1',
    ...optional('hookStarted', env['ACTIONS_RUNNER_HOOK_JOB_STARTED']),
    ...optional('hookCompleted', env['ACTIONS_RUNNER_HOOK_JOB_COMPLETED']),
    stopTimes: { interruptMs: Number(env['SIM_RUNNER_INTERRUPT_MS'] ?? 7500), terminateMs: Number(env['SIM_RUNNER_TERMINATE_MS'] ?? 2500) },
  };
  const flag = argv.indexOf('--jitconfig');
  const jit = flag >= 0 ? argv[flag + 1] : env['ACTIONS_RUNNER_INPUT_JITCONFIG'];
  if (jit) {
    const { runner, credentials } = decodeJitConfig(jit);
    return { ...common, mode: 'jit', serverUrl: runner.serverUrl, name: runner.agentName, credential: credentials.data.token, ephemeral: true };
  }
  const token = env['RUNNER_TOKEN'];
  const address = env['RUNNER_URL'];
  if (!token || !address) throw new Error('Not configured. Set ACTIONS_RUNNER_INPUT_JITCONFIG, or RUNNER_TOKEN and RUNNER_URL.');
  const url = new URL(address);
  return {
    ...common,
    mode: 'token',
    serverUrl: url.origin,
    scope: scopeOf(env['RUNNER_SCOPE'] ?? url.pathname),
    name: env['RUNNER_NAME'] ?? hostname(),
    token,
    labels: (env['RUNNER_LABELS'] ?? '').split(',').map((label) => label.trim()).filter((label) => label !== ''),
    ...optional('group', env['RUNNER_GROUP']),
    ephemeral: env['RUNNER_EPHEMERAL'] === 'true',
    replace: env['RUNNER_REPLACE_EXISTING'] === 'true',
  };
}

const optional = <K extends string>(key: K, value: string | undefined): { [P in K]?: string } => (value ? ({ [key]: value } as { [P in K]?: string }) : {});

function scopeOf(path: string): string {
  const parts = path.split('/').filter((part) => part !== '');
  const [first] = parts;
  if (first === 'orgs' || first === 'repos' || first === 'enterprises') return parts.join('/');
  if (parts.length === 1) return `orgs/${first}`;
  if (parts.length === 2) return `repos/${parts.join('/')}`;
  throw new Error(`No scope: set RUNNER_SCOPE, or RUNNER_URL to the address of an organization, a repository or an enterprise (got path ${JSON.stringify(path)}).`);
}

function decodeJitConfig(text: string): { runner: JitRunnerFile; credentials: JitCredentialsFile } {
  const parse = (base64: string | undefined): unknown => JSON.parse(Buffer.from(base64 ?? '', 'base64').toString());
  try {
    const files = parse(text) as Record<string, string>;
    return { runner: parse(files['.runner']) as JitRunnerFile, credentials: parse(files['.credentials']) as JitCredentialsFile };
  } catch {
    throw new Error('The JIT config cannot be read: it is not base64 of JSON.'); // without its content, which is secret
  }
}
