/** Objects as ARC's users write them. */
import type { KubernetesObject } from '@kubernetes/client-node';
import { ARC_VERSION } from './arcManagers.ts';

const LEGACY = 'actions.summerwind.dev/v1alpha1';
export const SCALE_SETS = 'actions.github.com/v1alpha1';
const IMAGE = 'arc.test/runner:1';

type Labels = Readonly<Record<string, string>>;
export interface ArcObject extends KubernetesObject {
  readonly spec: object;
}

/**
 * Returns a RunnerDeployment.
 * @param labels - labels of its pods
 */
export const runnerDeployment = (
  namespace: string,
  name: string,
  replicas: number,
  labels: Labels = {},
): ArcObject => ({
  apiVersion: LEGACY,
  kind: 'RunnerDeployment',
  metadata: { namespace, name },
  spec: {
    replicas,
    template: {
      metadata: { labels },
      spec: { organization: 'acme', labels: ['linux'], image: IMAGE, dockerEnabled: false },
    },
  },
});

/** Returns an autoscaler that scales by the share of busy runners. */
export const autoscaler = (namespace: string, name: string): ArcObject => ({
  apiVersion: LEGACY,
  kind: 'HorizontalRunnerAutoscaler',
  metadata: { namespace, name },
  spec: {
    scaleTargetRef: { kind: 'RunnerDeployment', name },
    minReplicas: 1,
    maxReplicas: 2,
    metrics: [
      {
        type: 'PercentageRunnersBusy',
        scaleUpThreshold: '0.9',
        scaleDownThreshold: '0.1',
        scaleUpFactor: '2',
        scaleDownFactor: '0.5',
      },
    ],
  },
});

/**
 * Returns a RunnerSet.
 * @param labels - labels of its pods, and its selector
 */
export const runnerSet = (namespace: string, name: string, labels: Labels): ArcObject => ({
  apiVersion: LEGACY,
  kind: 'RunnerSet',
  metadata: { namespace, name },
  spec: {
    replicas: 1,
    organization: 'acme',
    labels: [name],
    dockerEnabled: false,
    serviceName: name,
    selector: { matchLabels: labels },
    template: { metadata: { labels }, spec: { containers: [{ name: 'runner', image: IMAGE }] } },
  },
});

/**
 * Returns a scale set as ARC's chart creates it.
 * @param secret - Secret with `github_token`
 */
export const scaleSet = (
  namespace: string,
  name: string,
  githubConfigUrl: string,
  secret: string,
): ArcObject => ({
  apiVersion: SCALE_SETS,
  kind: 'AutoscalingRunnerSet',
  metadata: {
    namespace,
    name,
    labels: {
      'app.kubernetes.io/managed-by': 'Helm',
      'app.kubernetes.io/name': name,
      'app.kubernetes.io/part-of': 'gha-runner-scale-set',
      'app.kubernetes.io/version': ARC_VERSION,
    },
  },
  spec: {
    githubConfigUrl,
    githubConfigSecret: secret,
    maxRunners: 5,
    template: {
      spec: { containers: [{ name: 'runner', image: IMAGE, command: ['/home/runner/run.sh'] }] },
    },
  },
});
