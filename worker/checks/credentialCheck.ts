/**
 * Checks whether the secrets of the CI server credentials can be read. The first request to the
 * server shows whether it accepts them.
 */
import type { Credentials } from '../../activities/ciServers/credentials.ts';
import { SecretSource } from '../../activities/ciServers/secretSource.ts';
import { oneLine } from '../settings/config.ts';
import type { Finding } from './finding.ts';

/**
 * Checks the secrets of all credentials. A missing secret is a warning, because it may be created
 * later and the other credentials work. If all are missing, each is an error.
 */
export async function checkCredentials(credentials: Credentials): Promise<Finding[]> {
  const results = await Promise.all(
    Object.entries(credentials).map(async ([name, credential]): Promise<Finding> => {
      try {
        await new SecretSource(name, credential).read();
        return { level: 'ok', message: `credential "${name}" can be read` };
      } catch (error) {
        const [what, fix] = oneLine(error).split(/; (?=put )/);
        return { level: 'warning', message: what ?? '', fix: fix ?? 'put the secret there' };
      }
    }),
  );
  const none = results.every((finding) => finding.level !== 'ok');
  return none
    ? results.map((finding) => ({ ...finding, level: 'error' }))
    : [...results, ...unbound(credentials)];
}

/**
 * Returns a warning for credentials without scopes, if there are several credentials. Several
 * credentials often belong to different teams.
 */
function unbound(credentials: Credentials): Finding[] {
  const names = Object.entries(credentials).filter(([, { scopes }]) => scopes === undefined);
  if (Object.keys(credentials).length < 2 || names.length === 0) return [];
  return [
    {
      level: 'warning',
      message: `everyone who can start workflows can use ${names.map(([name]) => `credential "${name}"`).join(' and ')} wherever its secret has access`,
      fix: 'list its scopes, e.g. scopes: [acme, other/repo]',
    },
  ];
}
