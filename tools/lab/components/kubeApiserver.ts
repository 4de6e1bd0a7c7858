import { join } from 'node:path';
import { existsSync } from 'node:fs';
import { port, type Component } from '../component.ts';
import { kubernetesApi } from '../kubernetesApi.ts';
import {
  kubeletClient,
  kubernetesFolder,
  writeControlPlaneFiles,
  writeKubeconfigs,
} from '../kubernetesFiles.ts';
import { etcdUrl } from './etcd.ts';

export const kubeApiserver: Component = {
  name: 'kube-apiserver',
  binaries: ['kube-apiserver'],
  ports: ['kube-apiserver'],
  after: ['etcd'],
  prepare: writeControlPlaneFiles,
  command(lab) {
    const folder = kubernetesFolder(lab);
    const client = kubeletClient(lab);
    return {
      args: [
        '--etcd-servers', etcdUrl(lab),
        '--bind-address', '127.0.0.1',
        '--advertise-address', '127.0.0.1',
        '--secure-port', String(port(lab, 'kube-apiserver')),
        // No pod uses the `kubernetes` service: there is no kube-proxy.
        '--endpoint-reconciler-type', 'none',
        '--cert-dir', join(folder, 'apiserver'),
        '--token-auth-file', join(folder, 'tokens.csv'),
        '--authorization-mode', 'Node,RBAC',
        '--enable-admission-plugins', 'NodeRestriction',
        '--service-account-issuer', 'https://kubernetes.default.svc',
        '--service-account-signing-key-file', join(folder, 'service-accounts.key'),
        '--service-account-key-file', join(folder, 'service-accounts.pub'),
        '--service-cluster-ip-range', '10.96.0.0/16',
        '--kubelet-preferred-address-types', 'InternalIP',
        ...(existsSync(client.certificate) ? ['--kubelet-client-certificate', client.certificate, '--kubelet-client-key', client.key] : []),
        '--allow-privileged=true',
        '--profiling=false',
      ],
    }; // prettier-ignore
  },
  healthy: async (lab) => (await kubernetesApi(lab, '/readyz'))?.status === 200,
  finish: writeKubeconfigs,
  readyWithinMs: 60_000,
  stop: { signal: 'SIGTERM', withinMs: 15_000 },
  fix: 'see that etcd runs (`lab status`)',
};
