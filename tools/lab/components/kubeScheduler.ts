import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { port, type Component, type Lab } from '../component.ts';
import { kubeconfigPath, kubernetesFolder } from '../kubernetesFiles.ts';
import { isOk } from '../probe.ts';

const configPath = (lab: Lab): string => join(kubernetesFolder(lab), 'scheduler.yaml');

export const kubeScheduler: Component = {
  name: 'kube-scheduler',
  binaries: ['kube-scheduler'],
  ports: ['kube-scheduler'],
  after: ['kube-apiserver'],
  async prepare(lab) {
    const config = {
      apiVersion: 'kubescheduler.config.k8s.io/v1',
      kind: 'KubeSchedulerConfiguration',
      // The default of 50 requests per second would limit benchmarks.
      clientConnection: { kubeconfig: kubeconfigPath(lab), qps: 1000, burst: 2000 },
      leaderElection: { leaderElect: false },
    };
    await writeFile(configPath(lab), stringify(config));
  },
  command(lab) {
    return {
      args: [
        '--config', configPath(lab),
        '--bind-address', '127.0.0.1',
        '--secure-port', String(port(lab, 'kube-scheduler')),
        '--cert-dir', join(kubernetesFolder(lab), 'scheduler'),
      ],
    }; // prettier-ignore
  },
  healthy: (lab) => isOk(`https://127.0.0.1:${port(lab, 'kube-scheduler')}/healthz`, { ca: false }),
  readyWithinMs: 60_000,
  stop: { signal: 'SIGTERM', withinMs: 10_000 },
  fix: 'see that the API server runs (`lab status`)',
};
