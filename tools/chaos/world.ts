import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { CoreV1Api, KubeConfig, KubernetesObjectApi } from '@kubernetes/client-node';
import { Client, Connection } from '@temporalio/client';
import { GITHUB_RUNNER } from '../../core/domain/runnerKinds/gitHub.ts';
import { installationSelector } from '../../activities/compute/kubernetes/metadata.ts';
import { sweepScheduleId } from '../../core/contract/index.ts';
import { createNamespace } from '../bench/namespace.ts';
import { KwokAgentProcess } from '../bench/processes/kwokAgentProcess.ts';
import { down, status, up, type LabState } from '../lab/lab.ts';
import { preparesNamespace } from '../lab/temporalNamespace.ts';
import { startSimulator, type Simulator } from '../simulator/simulator.ts';
import { startApiServerProxy, type ApiServerProxy } from './apiServerProxy.ts';
import { startTemporalProxy, type TemporalProxy } from './temporalProxy.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { Observer } from './observer.ts';
import { until } from './waitUntil.ts';
import { Workers } from './workers.ts';

/** Options of {@link openChaosEnvironment}. */
export interface ChaosWorldOptions {
  readonly seed: number;
  readonly nodes: 'kwok' | 'kubelet';
  /** Folder of the lab, its data and all logs. */
  readonly stateDir: string;
  readonly progress: (line: string) => void;
  /** Whether each worker connects to Temporal through a separate proxy. @default false */
  readonly temporalProxies?: boolean;
}

/** Organization of all registrations. */
export const ORGANIZATION = 'chaos';
/** Credential of the workers. */
export const CREDENTIAL = 'default';
const WORKERS = 2;
/**
 * Lease of a job at the simulator (ms). Short, so that the registration of a runner that was killed
 * during its job is released soon, but longer than any outage.
 */
const LEASE_MS = 30_000;
/** Time after which an assigned job that has not started is queued again (ms). */
const ACCEPT_MS = 10_000;
const STARTUP_MS = 300;
const SWEEP_INTERVAL = '10s';
/** Temporal namespace of the other installation. */
const OTHER_NAMESPACE = 'chaos-other';

/** Environment of a run: real components, simulated GitHub, workers behind proxies, observer. */
export interface ChaosEnvironment {
  readonly lab: LabState;
  readonly nodes: 'kwok' | 'kubelet';
  readonly client: Client;
  readonly core: CoreV1Api;
  readonly objects: KubernetesObjectApi;
  /** Name of the Kubernetes namespace, the task queue and the installation. */
  readonly name: string;
  /** Settings of another installation of the same name, with another Temporal namespace. */
  readonly foreignSettings: Readonly<Record<string, string>>;
  readonly simulator: Simulator;
  readonly proxy: ApiServerProxy;
  readonly observer: Observer;
  /** Start of the observer's clock (ms since the epoch). */
  readonly startedAtMs: number;
  readonly workers: Workers;
  /** Proxy of each worker for Temporal. Empty without `temporalProxies`. */
  readonly temporalProxies: readonly TemporalProxy[];
  /** Current token of the workers at the CI server. */
  readonly token: { current: string; readonly file: string };
  /** @throws Error if the simulation of runners on KWOK nodes has failed */
  check(): void;
  close(): Promise<void>;
}

/**
 * Starts all components.
 * @throws ComponentUnavailableError if this machine cannot run them
 */
export async function openChaosEnvironment({
  seed,
  nodes,
  stateDir,
  progress,
  temporalProxies: areProxied = false,
}: ChaosWorldOptions): Promise<ChaosEnvironment> {
  const closers: (() => Promise<unknown>)[] = [];
  const close = async (): Promise<void> => {
    for (const closer of closers.splice(0))
      await closer().catch((error: unknown) => progress(`cleaning up: ${String(error)}`));
  };
  try {
    const wasUp = Object.values((await status({ stateDir })).components).some(
      ({ state }) => state !== 'down',
    );
    closers.unshift(async () => {
      if (!wasUp) await down({ stateDir, purge: true, progress });
    });
    const lab = await up({ stateDir, temporal: true, kubernetes: true, nodes, progress });
    const name = `chaos-${randomUUID().slice(0, 6)}`;
    const folder = join(lab.stateDir, 'logs', name);
    await mkdir(folder, { recursive: true });
    progress(`logs are in ${folder}`);

    const kubeConfig = new KubeConfig();
    kubeConfig.loadFromFile(lab.kubernetes?.kubeconfig ?? '');
    const core = kubeConfig.makeApiClient(CoreV1Api);
    const objects = kubeConfig.makeApiClient(KubernetesObjectApi);
    await createNamespace(core, name);
    closers.unshift(
      async () => await core.deleteNamespace({ name, body: { gracePeriodSeconds: 0 } }),
    );

    const token = { current: randomToken(), file: join(folder, 'token') };
    await writeFile(token.file, token.current);
    const simulator = await startSimulator({
      host: lab.hostAddress ?? '127.0.0.1',
      seed,
      leaseMs: LEASE_MS,
      acceptMs: ACCEPT_MS,
      rateLimit: { limit: 10_000_000 },
      tokens: [{ name: CREDENTIAL, token: token.current }],
    });
    closers.unshift(async () => await simulator.stop());
    const startedAtMs = Date.now();
    const observer = new Observer(simulator);
    await observer.start(kubeConfig, core, name);
    closers.unshift(async () => await observer.stop());
    const proxy = await startApiServerProxy(kubeConfig, {
      onRequest: (request) => observer.request(request),
    });
    closers.unshift(async () => await proxy.close());
    const agent = nodes === 'kubelet' ? undefined : await KwokAgentProcess.start(
      { kubeconfig: lab.kubernetes?.kubeconfig ?? '', namespace: name, labelSelector: installationSelector(name), simulatorUrl: simulator.url, timing: { startupMs: STARTUP_MS, deletionMs: 0 } },
      () => undefined,
    ); // prettier-ignore
    closers.unshift(async () => await agent?.stop());
    await until(
      'the other Temporal namespace',
      async () => await preparesNamespace(lab.temporal?.address ?? '', OTHER_NAMESPACE),
    );
    const connection = await Connection.connect({ address: lab.temporal?.address ?? '' });
    closers.unshift(async () => await connection.close());

    const kubeconfig = join(folder, 'kubeconfig');
    await writeFile(kubeconfig, proxy.kubeconfig);
    const secret = randomUUID();
    const settings = {
      TEMPORAL_ADDRESS: lab.temporal?.address ?? '',
      HOLDFAST_TASK_QUEUE: name,
      HOLDFAST_INSTALLATION: name,
      HOLDFAST_COMPUTE: 'kubernetes',
      HOLDFAST_KUBECONFIG: kubeconfig,
      HOLDFAST_KUBERNETES_NAMESPACE: name,
      HOLDFAST_RUNNER_IMAGE: 'holdfast.test/runner:1',
      HOLDFAST_RUNNER_COMMAND: JSON.stringify(GITHUB_RUNNER.image.command),
      HOLDFAST_SUPERVISOR_IMAGE: 'holdfast.test/supervisor:1',
      HOLDFAST_GITHUB_URL: simulator.url,
      HOLDFAST_GITHUB_TOKEN_FILE: token.file,
      HOLDFAST_WEBHOOK_SECRET: secret,
      HOLDFAST_SWEEP_INTERVAL: SWEEP_INTERVAL,
      HOLDFAST_SHUTDOWN_GRACE_TIME: '2s',
      HOLDFAST_SHUTDOWN_FORCE_TIME: '5s',
      HOLDFAST_LOG_LEVEL: 'debug',
    };
    const temporalProxies: TemporalProxy[] = [];
    for (let number = 0; areProxied && number < WORKERS; number++)
      temporalProxies.push(await startTemporalProxy(lab.temporal?.address ?? ''));
    closers.unshift(
      async () => await Promise.all(temporalProxies.map(async (proxy) => await proxy.close())),
    );
    const workers = await Workers.start(
      WORKERS,
      settings,
      folder,
      (number) => omitUndefined({ TEMPORAL_ADDRESS: temporalProxies[number]?.address }),
      (url) => simulator.setWebhook({ url: `${url}/webhooks/github`, secret }),
    );
    closers.unshift(async () => await workers.close());
    const client = new Client({ connection });
    // Otherwise the Schedule would start sweeps after the run.
    closers.unshift(async () => await client.schedule.getHandle(sweepScheduleId(name)).delete());
    return {
      lab,
      nodes,
      client,
      core,
      objects,
      name,
      foreignSettings: { ...settings, TEMPORAL_NAMESPACE: OTHER_NAMESPACE },
      simulator,
      proxy,
      observer,
      startedAtMs,
      workers,
      temporalProxies,
      token,
      check: () => agent?.check(),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Returns a random token in the format of GitHub. */
export function randomToken(): string {
  return `ghp_${randomUUID().replaceAll('-', '')}`;
}
