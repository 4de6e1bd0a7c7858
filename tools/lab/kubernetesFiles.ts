import { execFile } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { access, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { stringify } from 'yaml';
import { port, type Lab } from './component.ts';

export const kubernetesFolder = (lab: Lab): string => join(lab.dir, 'kubernetes');
/**
 * Path of the certificate that the API server writes when it first starts, followed by the CA that
 * signed it.
 */
export const apiServerCertificate = (lab: Lab): string =>
  join(kubernetesFolder(lab), 'apiserver', 'apiserver.crt');
export const kubeconfigPath = (lab: Lab): string => join(lab.dir, 'kubeconfig');
export const nodeKubeconfigPath = (lab: Lab): string =>
  join(kubernetesFolder(lab), 'node.kubeconfig');
export const apiServerUrl = (lab: Lab): string =>
  `https://127.0.0.1:${port(lab, 'kube-apiserver')}`;
export const NODE_NAME = 'lab';

/**
 * Paths of the API server's client certificate for the kubelet. The files do not exist on a machine
 * without openssl.
 */
export const kubeletClient = (lab: Lab): { certificate: string; key: string } => ({
  certificate: join(kubernetesFolder(lab), 'kubelet-client.crt'),
  key: join(kubernetesFolder(lab), 'kubelet-client.key'),
});

/** Creates keys and the token file, once per lab. */
export async function writeControlPlaneFiles(lab: Lab): Promise<void> {
  const folder = kubernetesFolder(lab);
  await mkdir(join(folder, 'apiserver'), { recursive: true, mode: 0o700 });

  if (!(await exists(join(folder, 'service-accounts.key')))) {
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    await writeFile(
      join(folder, 'service-accounts.pub'),
      publicKey.export({ type: 'spki', format: 'pem' }),
    );
    await writeFile(
      join(folder, 'service-accounts.key'),
      privateKey.export({ type: 'pkcs8', format: 'pem' }),
      { mode: 0o600 },
    );
  }
  const { admin, node } = lab.record.tokens;
  const tokens = [
    `${admin},lab-admin,lab-admin,"system:masters"`,
    `${node},system:node:${NODE_NAME},node,"system:nodes"`,
    '',
  ].join('\n');
  await writeFile(join(folder, 'tokens.csv'), tokens, { mode: 0o600 });

  const client = kubeletClient(lab);
  if (!(await exists(client.certificate))) {
    // Self-signed, so that the kubelet trusts exactly this certificate. The crypto module of
    // Node.js cannot create certificates.
    await promisify(execFile)('openssl', [
      'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '3650',
      '-subj', '/O=system:masters/CN=lab-apiserver', '-keyout', client.key, '-out', client.certificate,
    ]).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
    }); // prettier-ignore
  }
}

/** Writes the kubeconfigs of admin and node. Requires the API server's certificate. */
export async function writeKubeconfigs(lab: Lab): Promise<void> {
  const ca = (await readFile(apiServerCertificate(lab))).toString('base64');
  const of = (user: string, token: string): string =>
    stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        {
          name: 'holdfast-lab',
          cluster: { server: apiServerUrl(lab), 'certificate-authority-data': ca },
        },
      ],
      users: [{ name: user, user: { token } }],
      contexts: [{ name: 'holdfast-lab', context: { cluster: 'holdfast-lab', user } }],
      'current-context': 'holdfast-lab',
    });
  await writeFile(kubeconfigPath(lab), of('lab-admin', lab.record.tokens.admin), { mode: 0o600 });
  await writeFile(nodeKubeconfigPath(lab), of(`system:node:${NODE_NAME}`, lab.record.tokens.node), {
    mode: 0o600,
  });
}

export async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
