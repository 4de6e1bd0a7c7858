import type { Component, LabRecord } from '../component.ts';
import type { ComponentName } from '../options.ts';
import { containerd } from './containerd.ts';
import { etcd } from './etcd.ts';
import { gitea } from './gitea.ts';
import { kubeApiserver } from './kubeApiserver.ts';
import { kubeControllerManager } from './kubeControllerManager.ts';
import { kubelet } from './kubelet.ts';
import { kubeScheduler } from './kubeScheduler.ts';
import { kwok } from './kwok.ts';
import { postgres } from './postgres.ts';
import { temporal } from './temporal.ts';
import {
  temporalFrontend,
  temporalHistory,
  temporalMatching,
  temporalWorker,
} from './temporalCluster.ts';
import { versitygw } from './versitygw.ts';

/** All components, each after those that it needs. */
export const COMPONENTS: Readonly<Record<ComponentName, Component>> = {
  temporal,
  postgres,
  'temporal-matching': temporalMatching,
  'temporal-frontend': temporalFrontend,
  'temporal-history': temporalHistory,
  'temporal-worker': temporalWorker,
  etcd,
  'kube-apiserver': kubeApiserver,
  'kube-controller-manager': kubeControllerManager,
  'kube-scheduler': kubeScheduler,
  containerd,
  kubelet,
  kwok,
  versitygw,
  gitea,
};

/** Returns the components of a lab in the order of their start. */
export function componentsOf(
  record: Pick<LabRecord, 'temporal' | 'kubernetes' | 'nodes' | 's3' | 'gitea'>,
): Component[] {
  return [
    ...(record.temporal === 'dev' ? [temporal] : []),
    ...(record.temporal === 'cluster'
      ? [postgres, temporalMatching, temporalFrontend, temporalHistory, temporalWorker]
      : []),
    ...(record.kubernetes ? [etcd, kubeApiserver, kubeControllerManager, kubeScheduler] : []),
    ...(record.nodes === 'kubelet' ? [containerd, kubelet] : []),
    ...(record.nodes === 'kwok' ? [kwok] : []),
    ...(record.s3 === true ? [versitygw] : []),
    ...(record.gitea === true ? [gitea] : []),
  ];
}
