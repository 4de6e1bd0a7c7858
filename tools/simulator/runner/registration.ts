import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ServerConnection } from './serverConnection.ts';
import type { RunnerSettings, TokenSettings } from './settings.ts';
import type {
  JitCredentialsFile,
  JitRunnerFile,
  RegisterResponse,
  RegisterBody,
  Rejection,
} from './wire.ts';

export const TERMINATED =
  'Runner listener exit with terminated error, stop the service, no retry needed.';

/** Registers with a token. @returns the exit code where it was refused */
export async function register(
  settings: TokenSettings,
  print: (line: string) => void,
  signal?: AbortSignal,
): Promise<RegisterResponse | number> {
  const { serverUrl, scope, token, name, labels, group, ephemeral, replace, version } = settings;
  const body: RegisterBody = {
    scope,
    token,
    name,
    labels,
    ephemeral,
    replace,
    version,
    ...(group === undefined ? {} : { group }),
  };
  const answer = await new ServerConnection(serverUrl).request('POST', 'register', {
    body,
    ...(signal ? { signal } : {}),
  });
  if (answer.status === 201) {
    print('√ Connected to GitHub');
    print('√ Runner successfully added');
    return answer.body as RegisterResponse;
  }
  const { reason } = answer.body as Rejection;
  if (reason === 'deprecated') return printDeprecation(settings, print);
  // The real server returns the same 404 for a token that is expired, for another scope or unknown.
  print(
    reason === 'conflict'
      ? `A runner exists with the same name ${name}.`
      : "Http response code: NotFound from 'POST actions/runner-registration'",
  );
  print(
    reason === 'conflict'
      ? 'Use --replace to replace it.'
      : '{"message":"Not Found","documentation_url":"https://docs.github.com/rest"}',
  );
  print('Response status code does not indicate success: 404 (Not Found).');
  return 1;
}

/**
 * Does what `config.sh` does: registers, and writes the files for a later run.
 * @returns the exit code
 */
export async function configure(
  settings: TokenSettings,
  folder: string,
  print: (line: string) => void,
): Promise<number> {
  const answer = await register(settings, print);
  if (typeof answer === 'number') return answer;
  const { serverUrl, ephemeral } = settings;
  const runner: JitRunnerFile = {
    agentId: answer.runnerId,
    agentName: answer.name,
    serverUrl,
    gitHubUrl: serverUrl,
    workFolder: '_work',
    ephemeral,
  };
  const credentials: JitCredentialsFile = { scheme: 'OAuth', data: { token: answer.credential } };
  writeFileSync(join(folder, '.runner'), JSON.stringify(runner));
  writeFileSync(join(folder, '.credentials'), JSON.stringify(credentials));
  print('√ Settings Saved.');
  return 0;
}

/** @returns the exit code */
export function printDeprecation(
  { version, deprecatedExitCode }: RunnerSettings,
  print: (line: string) => void,
): number {
  print(`Runner version v${version} is deprecated and cannot receive messages.`);
  if (deprecatedExitCode) return 7;
  print(TERMINATED);
  return 1;
}
