/**
 * Creates Deployments of a WorkerDeployment: Temporal's worker controller, if this machine has it,
 * otherwise a stand-in for the part that a rollout needs.
 *
 * HOLDFAST_TEMPORAL_WORKER_CONTROLLER_BIN is its manager, HOLDFAST_TEMPORAL_WORKER_CONTROLLER_CRDS
 * the folder of its chart of custom resource definitions.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, openSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import {
  ApiextensionsV1Api,
  ApiException,
  AppsV1Api,
  CustomObjectsApi,
  type KubeConfig,
  type V1Deployment,
} from '@kubernetes/client-node';
import type { Client } from '@temporalio/client';
import { objectsOf, type Helm, type Manifest } from './chart.ts';
import { StrictApi } from './strictApi.ts';
import { TestAuthority } from './tlsGate.ts';
import { until } from './until.ts';

const BIN = process.env['HOLDFAST_TEMPORAL_WORKER_CONTROLLER_BIN'] ?? '';
const CRDS = process.env['HOLDFAST_TEMPORAL_WORKER_CONTROLLER_CRDS'] ?? '';
/** Whether this machine has the controller itself. */
export const HAS_WORKER_CONTROLLER = BIN !== '' && CRDS !== '';

const GROUP = { group: 'temporal.io', version: 'v1alpha1' } as const;
const CHECK_INTERVAL_MS = 500;

export interface WorkerController {
  /** Returns its last log lines, for a failure message. */
  told(): string;
  /** Removes the custom resource definitions too. */
  stop(): Promise<void>;
}

interface Home {
  readonly kubeConfig: KubeConfig;
  readonly kubeconfig: string;
  readonly namespace: string;
  readonly helm: Helm;
  readonly client: Client;
}

/** Starts it for the WorkerDeployments of one namespace. */
export async function startWorkerController(home: Home): Promise<WorkerController> {
  const extensions = home.kubeConfig.makeApiClient(ApiextensionsV1Api);
  const definitions = HAS_WORKER_CONTROLLER
    ? objectsOf((await home.helm.run('template', 'crds', CRDS)).stdout)
    : [looseDefinition('Connection'), looseDefinition('WorkerDeployment')];
  const api = new StrictApi(home.kubeConfig);
  for (const definition of definitions) {
    const refusal = await api.refusal(definition, { dryRun: false });
    if (refusal !== undefined) throw new Error(refusal);
  }
  const names = definitions.map(({ metadata }) => metadata.name ?? '');
  await until('the definitions to be established', async () =>
    (
      await Promise.all(
        names.map(async (name) => await extensions.readCustomResourceDefinition({ name })),
      )
    ).every(({ status }) =>
      status?.conditions?.some(
        ({ type, status: state }) => type === 'Established' && state === 'True',
      ),
    ),
  );
  const controller = HAS_WORKER_CONTROLLER ? new Manager(home) : new StandIn(home);
  return {
    told: () => controller.told(),
    async stop() {
      await controller.stop();
      for (const name of names) await extensions.deleteCustomResourceDefinition({ name });
    },
  };
}

function looseDefinition(kind: string): Manifest {
  const plural = `${kind.toLowerCase()}s`;
  const schema = {
    openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  };
  const spec = {
    group: GROUP.group,
    names: { kind, plural },
    scope: 'Namespaced',
    versions: [{ name: GROUP.version, served: true, storage: true, schema }],
  };
  return Object.assign(
    {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: `${plural}.${GROUP.group}` },
    },
    { spec },
  );
}

/**
 * Temporal's own controller as a process outside of the cluster: without leader election, and
 * without its webhooks, which nothing calls.
 */
class Manager implements WorkerController {
  readonly #folder = mkdtempSync(join(tmpdir(), 'holdfast-worker-controller-'));
  readonly #process: ChildProcess;

  constructor({ kubeconfig, namespace }: Home) {
    // It still serves its webhooks.
    const certificates = join(this.#folder, 'k8s-webhook-server', 'serving-certs');
    mkdirSync(certificates, { recursive: true });
    const { crt, key } = new TestAuthority(this.#folder).issue('manager');
    renameSync(crt, join(certificates, 'tls.crt'));
    renameSync(key, join(certificates, 'tls.key'));
    const log = openSync(join(this.#folder, 'log'), 'a');
    const env = {
      PATH: process.env['PATH'],
      KUBECONFIG: kubeconfig,
      TMPDIR: this.#folder,
      POD_NAMESPACE: namespace,
      CONTROLLER_IDENTITY: 'holdfast-test',
    };
    this.#process = spawn(
      BIN,
      [
        '--metrics-bind-address',
        '0',
        '--health-probe-bind-address',
        '0',
        '--watch-namespaces',
        namespace,
      ],
      { env, stdio: ['ignore', log, log] },
    );
  }

  told(): string {
    return readFileSync(join(this.#folder, 'log'), 'utf8').slice(-4_000);
  }

  async stop(): Promise<void> {
    if (this.#process.exitCode === null && this.#process.kill()) await once(this.#process, 'exit');
    rmSync(this.#folder, { recursive: true });
  }
}

interface PodTemplate {
  readonly metadata: { readonly labels: Readonly<Record<string, string>> };
  readonly spec: {
    readonly containers: readonly {
      readonly name: string;
      readonly image: string;
      readonly env: readonly { readonly name: string; readonly value?: string }[];
    }[];
  };
}

interface WorkerDeployment {
  readonly metadata: { readonly name: string; readonly uid: string };
  readonly spec: {
    readonly replicas: number;
    readonly template: PodTemplate;
    readonly workerOptions: {
      readonly connectionRef: { readonly name: string };
      readonly temporalNamespace: string;
    };
  };
}

/**
 * Creates a Deployment for each version, with the variables that the controller adds, and makes the
 * newest current when its workers poll. It neither scales nor deletes them.
 */
class StandIn implements WorkerController {
  readonly #home: Home;
  readonly #stopping = new AbortController();
  readonly #done: Promise<void>;
  #last = 'nothing yet';

  constructor(home: Home) {
    this.#home = home;
    this.#done = this.#run();
  }

  told(): string {
    return this.#last;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#done;
  }

  async #run(): Promise<void> {
    const custom = this.#home.kubeConfig.makeApiClient(CustomObjectsApi);
    while (!this.#stopping.signal.aborted) {
      try {
        const { items } = (await custom.listNamespacedCustomObject({
          ...GROUP,
          namespace: this.#home.namespace,
          plural: 'workerdeployments',
        })) as { items: WorkerDeployment[] };
        for (const item of items) this.#last = await this.#rollOut(item, custom);
      } catch (error) {
        this.#last = String(error);
      }
      await delay(CHECK_INTERVAL_MS, undefined, { signal: this.#stopping.signal }).catch(
        () => undefined,
      );
    }
  }

  async #rollOut({ metadata, spec }: WorkerDeployment, custom: CustomObjectsApi): Promise<string> {
    const { kubeConfig, namespace, client } = this.#home;
    const tag = spec.template.spec.containers[0]?.image.split(':').at(-1) ?? '';
    const buildId = `${tag}-${createHash('sha256').update(JSON.stringify(spec.template)).digest('hex').slice(0, 8)}`;
    const deploymentName = `${namespace}/${metadata.name}`;
    const connection = (await custom.getNamespacedCustomObject({
      ...GROUP,
      namespace,
      plural: 'connections',
      name: spec.workerOptions.connectionRef.name,
    })) as { spec: { hostPort: string } };
    const added = {
      TEMPORAL_ADDRESS: connection.spec.hostPort,
      TEMPORAL_NAMESPACE: spec.workerOptions.temporalNamespace,
      TEMPORAL_DEPLOYMENT_NAME: deploymentName,
      TEMPORAL_WORKER_BUILD_ID: buildId,
    };
    const apps = kubeConfig.makeApiClient(AppsV1Api);
    const deployment = deploymentOf(metadata, spec, buildId, added);
    const name = deployment.metadata?.name ?? '';
    const { status } = await apps
      .readNamespacedDeployment({ namespace, name })
      .catch(async (error: unknown) => {
        if (!(error instanceof ApiException) || error.code !== 404) throw error;
        return await apps.createNamespacedDeployment({ namespace, body: deployment });
      });
    if (
      status?.conditions?.every(
        ({ type, status: state }) => type !== 'Available' || state !== 'True',
      ) ??
      true
    )
      return `waits for ${name}`;
    await client.workflowService.setWorkerDeploymentCurrentVersion({
      namespace: spec.workerOptions.temporalNamespace,
      deploymentName,
      buildId,
      identity: 'stand-in',
    });
    return `made ${buildId} current`;
  }
}

function deploymentOf(
  { name, uid }: WorkerDeployment['metadata'],
  { template, replicas }: WorkerDeployment['spec'],
  buildId: string,
  added: Readonly<Record<string, string>>,
): V1Deployment {
  const matchLabels = { 'temporal.io/deployment-name': name, 'temporal.io/build-id': buildId };
  const env = Object.entries(added).map(([variable, value]) => ({ name: variable, value }));
  const containers = template.spec.containers.map((container) => ({
    ...container,
    env: [...container.env, ...env],
  }));
  return {
    metadata: {
      name: `${name}-${buildId}`,
      labels: matchLabels,
      ownerReferences: [
        {
          apiVersion: `${GROUP.group}/${GROUP.version}`,
          kind: 'WorkerDeployment',
          name,
          uid,
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
    spec: {
      replicas,
      selector: { matchLabels },
      template: {
        metadata: { ...template.metadata, labels: { ...template.metadata.labels, ...matchLabels } },
        spec: { ...template.spec, containers },
      },
    },
  };
}
