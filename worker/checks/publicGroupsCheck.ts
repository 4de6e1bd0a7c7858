/** Checks which runner groups of the credentials public repositories may use. */
import { createCiServers } from '../../activities/ciServers/createCiServers.ts';
import type { Credentials } from '../../activities/ciServers/credentials.ts';
import type { CiServers } from '../../activities/ports/ciServer.ts';
import type { Scope } from '../../core/domain/ciServer.ts';
import { oneLine } from '../settings/config.ts';
import type { Finding } from './finding.ts';

/**
 * Warns of runner groups that public repositories may use, for credentials that allow such groups.
 * Only the scopes that a credential lists are checked. Never throws: a failed request is a finding.
 */
export async function checkPublicGroups(credentials: Credentials): Promise<Finding[]> {
  const servers = createCiServers(credentials);
  try {
    const found = await Promise.all(
      Object.entries(credentials)
        .filter(([, { allowPublicRepositories }]) => allowPublicRepositories)
        .flatMap(([name, { scopes = [] }]) =>
          scopes.flatMap((key) => {
            const scope = groupScope(key);
            return scope === undefined ? [] : [checkScope(servers, name, scope)];
          }),
        ),
    );
    return found.flat();
  } finally {
    await servers.close();
  }
}

/** Returns the scope of a key of `scopes`, or `undefined` for a repository, which has no groups. */
function groupScope(key: string): Scope | undefined {
  const enterprise = /^enterprises\/(.+)$/.exec(key)?.[1];
  if (enterprise !== undefined) return { kind: 'enterprise', name: enterprise };
  return key.includes('/') ? undefined : { kind: 'organization', name: key };
}

async function checkScope(
  servers: CiServers,
  credential: string,
  scope: Scope,
): Promise<Finding[]> {
  try {
    const names = (await servers.get(credential).publicGroups?.(scope)) ?? [];
    if (names.length === 0) return [];
    return [
      {
        level: 'warning',
        message: `public repositories may use the runner groups ${names.map((name) => `"${name}"`).join(', ')} of ${scope.name}: anyone who opens a pull request in such a repository may run code on a runner`,
        fix: `change the groups at the CI server, or set allowPublicRepositories: false for the credential "${credential}", which rejects runners in them`,
      },
    ];
  } catch (error) {
    return [
      {
        level: 'warning',
        message: `the runner groups of ${scope.name} cannot be read with the credential "${credential}": ${oneLine(error)}`,
        fix: 'give the credential the permission to read them, or set its allowPublicRepositories: false',
      },
    ];
  }
}
