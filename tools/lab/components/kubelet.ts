import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { cgroupName, createCgroups } from '../cgroups.ts';
import { port, type Component, type Lab } from '../component.ts';
import { exists, kubeletClient, NODE_NAME, nodeKubeconfigPath } from '../kubernetesFiles.ts';
import { containerdSocket, kubeletFolder } from '../nodeFiles.ts';
import { checkNodeRequirements } from '../nodeRequirements.ts';
import { ComponentUnavailableError } from '../options.ts';
import { hostAddress } from '../podNetwork.ts';
import { isOk } from '../probe.ts';
import { saveSysctls } from '../sysctls.ts';
import { nodeIsReady } from './kwok.ts';

/**
 * The kubelet creates sockets below its folder, and the path of a socket has at most 107
 * characters.
 */
const MAX_STATE_DIR = 70;

const configPath = (lab: Lab): string => join(kubeletFolder(lab), 'config.yaml');

export const kubelet: Component = {
  name: 'kubelet',
  binaries: ['kubelet'],
  ports: ['kubelet', 'kubelet-health'],
  after: ['containerd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'],
  async check(lab) {
    await checkNodeRequirements();
    if (lab.dir.length > MAX_STATE_DIR) {
      throw new ComponentUnavailableError(
        'kubelet',
        `the state folder's path is too long for the kubelet's sockets (${lab.dir.length} characters, at most ${MAX_STATE_DIR}): choose another --state-dir`,
      );
    }
  },
  async prepare(lab) {
    if (!(await exists(kubeletClient(lab).certificate))) {
      throw new ComponentUnavailableError(
        'kubelet',
        'this control plane was started without openssl: run `lab down`, then `lab up --nodes kubelet`',
      );
    }
    await mkdir(join(kubeletFolder(lab), 'pods-logs'), { recursive: true });
    await saveSysctls();
    await createCgroups(lab.record);
    await writeFile(join(kubeletFolder(lab), 'resolv.conf'), 'options ndots:1\n');
    await writeFile(configPath(lab), stringify(config(lab)));
  },
  command(lab) {
    return {
      args: [
        '--config', configPath(lab),
        '--kubeconfig', nodeKubeconfigPath(lab),
        '--root-dir', join(kubeletFolder(lab), 'root'),
        '--cert-dir', join(kubeletFolder(lab), 'pki'),
        '--hostname-override', NODE_NAME,
        '--node-ip', hostAddress(lab.record),
      ],
    }; // prettier-ignore
  },
  healthy: (lab) => isOk(`http://127.0.0.1:${port(lab, 'kubelet-health')}/healthz`),
  ready: async (lab) => (await kubelet.healthy(lab)) && (await nodeIsReady(lab, NODE_NAME)),
  readyWithinMs: 90_000,
  stop: { signal: 'SIGTERM', withinMs: 10_000 },
  fix: 'see the log for the check that failed; needs root and cgroups',
};

/** https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/ */
function config(lab: Lab): unknown {
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    containerRuntimeEndpoint: `unix://${containerdSocket(lab)}`,
    address: hostAddress(lab.record),
    port: port(lab, 'kubelet'),
    healthzBindAddress: '127.0.0.1',
    healthzPort: port(lab, 'kubelet-health'),
    readOnlyPort: 0,
    // Pods reach this address too, so only the API server's certificate is accepted.
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: false },
      x509: { clientCAFile: kubeletClient(lab).certificate },
    },
    authorization: { mode: 'AlwaysAllow' },
    cgroupDriver: 'cgroupfs',
    cgroupRoot: `/${cgroupName(lab.record)}`,
    enforceNodeAllocatable: [],
    failCgroupV1: false,
    failSwapOn: false,
    oomScoreAdj: 0,
    makeIPTablesUtilChains: false,
    podLogsDir: join(kubeletFolder(lab), 'pods-logs'),
    volumePluginDir: join(kubeletFolder(lab), 'volume-plugins'),
    resolvConf: join(kubeletFolder(lab), 'resolv.conf'),
    // Images cannot be pulled again, and a developer's disk is often rather full.
    imageGCHighThresholdPercent: 100,
    imageGCLowThresholdPercent: 99,
    evictionHard: {
      'memory.available': '100Mi',
      'nodefs.available': '500Mi',
      'imagefs.available': '500Mi',
      'nodefs.inodesFree': '1%',
    },
    serializeImagePulls: false,
  };
}
