import type { Registration } from './registrations.ts';
import type { JitCredentialsFile, JitRunnerFile } from './runner/wire.ts';
import { scopeUrlPath } from './scope.ts';

const base64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64');

/**
 * Returns the `encoded_jit_config` in GitHub's format: base64 of an object from file names to
 * base64 of their contents.
 */
export function encodeJitConfig(
  registration: Registration,
  serverUrl: string,
  workFolder: string,
): string {
  const runner: JitRunnerFile = {
    agentId: registration.id,
    agentName: registration.name,
    serverUrl,
    gitHubUrl: `${serverUrl}/${scopeUrlPath(registration.scope)}`,
    workFolder,
    ephemeral: true,
  };
  const credentials: JitCredentialsFile = {
    scheme: 'OAuth',
    data: { token: registration.credential },
  };
  return base64({ '.runner': base64(runner), '.credentials': base64(credentials) });
}
