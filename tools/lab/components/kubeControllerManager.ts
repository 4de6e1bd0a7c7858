import { join } from 'node:path';
import { port, type Component } from '../component.ts';
import { kubernetesApi } from '../kubernetesApi.ts';
import { apiServerCertificate, kubeconfigPath, kubernetesFolder } from '../kubernetesFiles.ts';
import { isOk } from '../probe.ts';

export const kubeControllerManager: Component = {
  name: 'kube-controller-manager',
  binaries: ['kube-controller-manager'],
  ports: ['kube-controller-manager'],
  after: ['kube-apiserver'],
  command(lab) {
    const folder = kubernetesFolder(lab);
    return {
      args: [
        '--kubeconfig', kubeconfigPath(lab),
        '--bind-address', '127.0.0.1',
        '--secure-port', String(port(lab, 'kube-controller-manager')),
        '--cert-dir', join(folder, 'controller-manager'),
        '--leader-elect=false',
        '--service-account-private-key-file', join(folder, 'service-accounts.key'),
        '--root-ca-file', apiServerCertificate(lab),
        // The default of 20 requests per second would limit benchmarks.
        '--kube-api-qps', '500',
        '--kube-api-burst', '1000',
      ],
    }; // prettier-ignore
  },
  healthy: (lab) =>
    isOk(`https://127.0.0.1:${port(lab, 'kube-controller-manager')}/healthz`, { ca: false }),
  // A pod can be created once its namespace's default service account exists.
  ready: async (lab) =>
    (await kubeControllerManager.healthy(lab)) &&
    (await kubernetesApi(lab, '/api/v1/namespaces/default/serviceaccounts/default'))?.status ===
      200,
  readyWithinMs: 60_000,
  stop: { signal: 'SIGTERM', withinMs: 10_000 },
  fix: 'see that the API server runs (`lab status`)',
};
