/**
 * Public API of the package `holdfast`: the plugin for your own Worker, and the names and types for
 * communication with runners.
 *
 * @module holdfast
 */
export {
  HoldfastPlugin,
  workflowInterceptorsPath,
  workflowsPath,
  type HoldfastPluginOptions,
  type HoldfastPluginStatus,
} from './plugin/plugin.ts';
export { ciQueuesOf, type CiQueue } from './settings/ciQueues.ts';
export {
  createEncryptedDataConverter,
  type EncryptedDataConverterOptions,
} from './codec/dataConverter.ts';
export type { EncryptionRequirement, PayloadRejection } from './codec/encryptionCodec.ts';
export type { SpanExportTarget } from './tracing/spanSink.ts';
export {
  ensureSweepSchedule,
  type SweepScheduleOptions,
  type SweepScheduleResult,
} from './temporal/sweepSchedule.ts';
export {
  createCiServers,
  credentialsForTaskQueue,
  parseCredentials,
  type Credential,
  type Credentials,
  type SecretProvider,
} from '../activities/ciServers/index.ts';
export type { CiServersOptions } from '../activities/ciServers/createCiServers.ts';
export type { RequestObserver } from '../activities/ciServers/requestObserver.ts';
export type { ApiRequestMetrics, ApiVerb } from '../activities/compute/kubernetes/apiServer.ts';
export {
  loadKubeConfig,
  type KubeConfigSource,
} from '../activities/compute/kubernetes/kubeConfig.ts';
export {
  createKubernetesCompute,
  type KubernetesCompute,
  type KubernetesComputeOptions,
} from '../activities/compute/kubernetes/kubernetesCompute.ts';
export type { OwnedObjects } from '../activities/shared/ownedObjects.ts';
export type { PodDefaults } from '../activities/compute/kubernetes/podSpec.ts';
export {
  createProcessCompute,
  type ProcessComputeOptions,
} from '../activities/compute/process/processCompute.ts';
export type {
  CiRunner,
  CiServer,
  CiServers,
  Redelivered,
  Registration,
} from '../activities/ports/ciServer.ts';
export type { CiServerErrorKind } from '../activities/ports/ciServerError.ts';
export type { Compute, DeletionOptions, PodListener } from '../activities/ports/compute.ts';
export type { ComputeErrorKind } from '../activities/ports/computeError.ts';
export type { Logger, RequestLogger } from '../activities/ports/logger.ts';
export type { PodLogs } from '../activities/ports/activityPorts.ts';
export type { PodDeletion } from '../core/activities/runner.ts';
export type { CiJob, CiJobList, RegisterRequest, Scope } from '../core/domain/ciServer.ts';
export type { CiServerKind } from '../core/domain/ciServerKind.ts';
export type { CiServerTraits } from '../core/domain/ciServerTraits.ts';
export type { ServedLocation } from '../core/domain/location.ts';
export type {
  ClaimWriter,
  PodExit,
  PodRef,
  PodRequest,
  PodTemplate,
  PodView,
  RunnerIdentity,
  StorageRequest,
  SupervisorConfig,
  SupervisorRecord,
} from '../core/domain/pod.ts';
export type { TimeoutPolicy } from '../core/input/timeoutPolicy.ts';
export { CiServerError } from '../activities/ports/ciServerError.ts';
export { ComputeError } from '../activities/ports/computeError.ts';
export * from '../core/contract/index.ts';
