/** Public surface of the package `holdfast`: the plugin for your own Worker, and the names and types to talk to runners with. */
export { HoldfastPlugin, workflowsPath, type HoldfastPluginOptions, type HoldfastPluginStatus } from './plugin.ts';
export { ciQueuesOf, type CiQueue } from './settings/ciQueues.ts';
export { encryptedDataConverter, type EncryptedDataConverterOptions } from './codec/dataConverter.ts';
export { keepSweepSchedule, type SweepScheduleOptions } from './sweepSchedule.ts';
export { createCiServers, credentialsFor, parseCredentials, type Credential, type Credentials } from '../activities/ciServers/index.ts';
export { loadKubeConfig, type KubeConfigSource } from '../activities/compute/kubernetes/kubeConfig.ts';
export { createKubernetesCompute, type KubernetesComputeOptions } from '../activities/compute/kubernetes/kubernetesCompute.ts';
export { createProcessCompute, type ProcessComputeOptions } from '../activities/compute/process/processCompute.ts';
export type { CiServer, CiServers, Compute } from '../activities/ports.ts';
export type { PodView } from '../core/domain/pod.ts';
export { CiServerError, ComputeError } from '../activities/ports.ts';
export * from '../core/contract/index.ts';
