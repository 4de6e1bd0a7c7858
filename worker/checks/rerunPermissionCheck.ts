/** Checks whether the credentials that may rerun jobs have the permissions for it. */
import { createCiServers, type Credentials } from '../../activities/ciServers/index.ts';
import { oneLine } from '../settings/config.ts';
import type { Finding } from './finding.ts';

/** Sends one request for each credential with `reruns: true`. Never throws. */
export async function checkRerunPermissions(credentials: Credentials): Promise<Finding[]> {
  const wanted = Object.fromEntries(Object.entries(credentials).filter(([, { reruns }]) => reruns));
  const servers = createCiServers(wanted);
  try {
    const findings = await Promise.all(
      Object.keys(wanted).map(async (name): Promise<Finding[]> => {
        try {
          const missing = (await servers.get(name).reruns?.missingPermissions()) ?? [];
          if (missing.length === 0) return [];
          return [
            {
              level: 'warning',
              message: `credential "${name}" may rerun jobs (reruns: true), but its App lacks ${missing.join(', ')}`,
              fix: 'add the permissions to the App and accept them for its installation, or remove reruns',
            },
          ];
        } catch (error) {
          return [
            {
              level: 'warning',
              message: `credential "${name}": ${oneLine(error)}`,
              fix: 'check the credential',
            },
          ];
        }
      }),
    );
    return findings.flat();
  } finally {
    await servers.close();
  }
}
