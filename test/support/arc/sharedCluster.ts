/**
 * One cluster that ARC and Holdfast share: both modes of ARC, a worker, two namespaces for runners,
 * one organization, and a ledger of all objects and writes.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import { KubernetesObjectApi, PatchStrategy, type KubernetesObject } from '@kubernetes/client-node';
import { isLocationLabel } from '../../../activities/compute/naming.ts';
import { loadKubeConfig } from '../../../activities/compute/kubernetes/kubeConfig.ts';
import { installationSelector } from '../../../activities/compute/kubernetes/metadata.ts';
import { KwokAgentProcess } from '../../../tools/bench/processes/kwokAgentProcess.ts';
import type { LabState } from '../../../tools/lab/lab.ts';
import type { SimulatedRegistration } from '../../../tools/simulator/types.ts';
import { startApiProxy, type ApiProxy } from '../apiProxy.ts';
import { ClusterWorld } from '../clusterWorld.ts';
import { createTestNamespace, type TestNamespace } from '../pods.ts';
import { until } from '../until.ts';
import { ARC_FIELD_MANAGER, ArcManagers, type ArcFiles } from './arcManagers.ts';
import { ArcRunners } from './arcRunners.ts';
import { ObjectLedger, writesOf } from './objectLedger.ts';
import { ScaleSetService } from './scaleSetService.ts';

export const ORGANIZATION = 'acme';
const ARC_TOKEN = 'ghp_arc';
/** Names of objects that Holdfast's charts and sweeps create. */
const HOLDFASTS_NAME = /\/(holdfast-|sh\.helm\.release\.v1\.holdfast\.)/;
/** A long time limit, because ARC is slow. */
const TIMEOUT_MS = 120_000;

interface Parts extends Pick<
  SharedCluster,
  'world' | 'home' | 'other' | 'ledger' | 'arc' | 'service' | 'runners' | 'byAdmin'
> {
  readonly agent: KwokAgentProcess;
  readonly byWorker: ApiProxy;
  readonly folder: string;
}

export class SharedCluster {
  /** Namespace of Holdfast, with runners of both. */
  readonly world: ClusterWorld;
  /** Namespace of ARC. */
  readonly home: TestNamespace;
  /** A namespace with runners of ARC only. */
  readonly other: TestNamespace;
  readonly ledger: ObjectLedger;
  readonly arc: ArcManagers;
  readonly service: ScaleSetService;
  readonly runners: ArcRunners;
  /** Proxy of all requests of Holdfast's commands, which have an administrator's permissions. */
  readonly byAdmin: ApiProxy;
  readonly #parts: Parts;
  readonly #objects: KubernetesObjectApi;
  /** All registrations that ever existed, by id. */
  readonly #registered = new Map<number, { readonly name: string; readonly holdfasts: boolean }>();
  #over = false;
  #noting: Promise<boolean> | undefined;

  private constructor(parts: Parts) {
    this.#parts = parts;
    ({
      world: this.world,
      home: this.home,
      other: this.other,
      ledger: this.ledger,
      arc: this.arc,
      service: this.service,
      runners: this.runners,
      byAdmin: this.byAdmin,
    } = parts);
    this.#objects = parts.home.kubeConfig.makeApiClient(KubernetesObjectApi);
  }

  /** Starts all parts, without a runner. */
  static async open(files: ArcFiles, lab: LabState): Promise<SharedCluster> {
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-arc-'));
    const world = await ClusterWorld.open(lab, {
      withoutWorker: true,
      simulator: { rateLimit: { limit: 1_000_000 }, offlineAfterMs: 1_000 },
    });
    const { kubeconfig, simulator, namespace, settings } = world;
    simulator.addToken({ token: ARC_TOKEN, name: 'arc' });
    const [home, other] = await Promise.all([
      createTestNamespace(kubeconfig, 'arc-system'),
      createTestNamespace(kubeconfig, 'arc-runners'),
    ]);
    const { kubeConfig, core } = home;
    const namespaces = [namespace.name, other.name];
    const service = await ScaleSetService.start(simulator.url, ARC_TOKEN, ORGANIZATION);
    const arc = await ArcManagers.open(files, {
      home,
      namespaces,
      folder,
      githubUrl: service.url,
      token: ARC_TOKEN,
    });
    const ledger = await ObjectLedger.open(kubeConfig, [...namespaces, home.name]);
    const runners = await ArcRunners.start(kubeConfig, core, namespaces, simulator.url);
    const agent = await KwokAgentProcess.start(
      {
        kubeconfig,
        namespace: namespace.name,
        labelSelector: installationSelector(namespace.name),
        simulatorUrl: simulator.url,
        timing: { startupMs: 100, deletionMs: 0 },
      },
      () => undefined,
    );
    const [byWorker, byAdmin] = await Promise.all([
      startApiProxy(loadKubeConfig({ path: settings['HOLDFAST_KUBECONFIG'] ?? '' })),
      startApiProxy(kubeConfig),
    ]);
    const cluster = new SharedCluster({
      world,
      home,
      other,
      ledger,
      arc,
      service,
      runners,
      agent,
      byWorker,
      byAdmin,
      folder,
    });
    await writeFile(cluster.adminKubeconfig, byAdmin.kubeConfig.exportConfig());
    await writeFile(join(folder, 'worker.kubeconfig'), byWorker.kubeConfig.exportConfig());
    // Commands run in this process, and read their credential's token from the environment.
    process.env['TOKEN_OF_DEFAULT'] = settings['TOKEN_OF_DEFAULT'];
    cluster.#noting = simulator.waitFor(() => cluster.#noteRegistrations(), 'the end', 3_600_000);
    return cluster;
  }

  get adminKubeconfig(): string {
    return join(this.#parts.folder, 'admin.kubeconfig');
  }

  /** Environment of Holdfast's commands. */
  get commandSettings(): Record<string, string> {
    return { ...this.world.settings, HOLDFAST_KUBECONFIG: this.adminKubeconfig };
  }

  async startArc(): Promise<void> {
    await this.arc.startFirstMode();
    this.arc.startScaleSets();
  }

  async startWorker(): Promise<void> {
    await this.world.startWorker({
      HOLDFAST_KUBECONFIG: join(this.#parts.folder, 'worker.kubeconfig'),
    });
  }

  /** The Secret that a scale set reads its credential from. */
  async makeScaleSetSecret(name: string): Promise<void> {
    const { core, name: namespace } = this.world.namespace;
    await core.createNamespacedSecret({
      namespace,
      body: { metadata: { name }, stringData: { github_token: ARC_TOKEN } },
    });
  }

  async make(...objects: readonly KubernetesObject[]): Promise<void> {
    for (const object of objects) await this.#objects.create(object);
  }

  async remove(...objects: readonly KubernetesObject[]): Promise<void> {
    for (const object of objects) await this.#objects.delete(object);
  }

  /** Returns the objects of a kind in Holdfast's namespace. */
  async list(apiVersion: string, kind: string): Promise<KubernetesObject[]> {
    return (await this.#objects.list(apiVersion, kind, this.world.namespace.name)).items;
  }

  /** Sets the number of replicas, as ARC's listener or a user does. */
  async resize({ apiVersion, kind, metadata }: KubernetesObject, replicas: number): Promise<void> {
    await this.#objects.patch(
      {
        apiVersion,
        kind,
        metadata: { name: metadata?.name, namespace: metadata?.namespace },
        spec: { replicas },
      } as KubernetesObject,
      undefined,
      undefined,
      undefined,
      undefined,
      PatchStrategy.MergePatch,
    );
  }

  /** Creates a registration of ARC whose runner never starts. */
  async registerForArc(name: string): Promise<void> {
    const answer = await fetch(
      `${this.world.simulator.url}/orgs/${ORGANIZATION}/actions/runners/generate-jitconfig`,
      {
        method: 'POST',
        headers: { authorization: `Bearer ${ARC_TOKEN}`, 'content-type': 'application/json' },
        body: JSON.stringify({ name, runner_group_id: 1, labels: ['linux'] }),
      },
    );
    expect(answer.status).toBe(201);
  }

  /** Returns the registrations of Holdfast, or those of all others. */
  registrations(holdfasts: boolean): SimulatedRegistration[] {
    return this.world.simulator.runners().filter((each) => isHoldfasts(each) === holdfasts);
  }

  /** Names of the runners that wait for a job. */
  idle(holdfasts: boolean): string[] {
    return this.registrations(holdfasts)
      .filter(({ status, busy }) => status === 'online' && !busy)
      .map(({ name }) => name)
      .toSorted();
  }

  async until(
    what: string,
    holds: () => Promise<boolean> | boolean,
    explain: () => string = () => '',
  ): Promise<void> {
    await until(
      what,
      async () => {
        this.arc.check();
        this.#parts.agent.check();
        return await holds();
      },
      explain,
      TIMEOUT_MS,
    ).catch(async (error: unknown) => {
      throw new Error(
        `${(error as Error).message}\n${JSON.stringify(this.world.simulator.runners())}\n${this.runners.errors.join('\n')}\n${(await this.arc.logs()).slice(-6_000)}`,
        { cause: error },
      );
    });
  }

  /**
   * Checks that neither side has written, adopted or removed an object or a registration of the
   * other.
   * @returns the number of objects that were checked, by kind
   */
  expectNothingOfTheOthersTouched(): Record<string, number> {
    const { byWorker } = this.#parts;
    const holdfasts = [byWorker, this.byAdmin].flatMap(writesOf);
    const arcs = writesOf(this.arc.proxy);
    const named = (writes: typeof arcs): string[] => writes.flatMap(({ key }) => key ?? []);
    expect(
      named(holdfasts).filter((key) => !this.ledger.isHoldfasts(key) && !HOLDFASTS_NAME.test(key)),
    ).toEqual([]);
    expect(named(arcs).filter((key) => this.ledger.isHoldfasts(key))).toEqual([]);
    for (const { method, path, key } of [...holdfasts, ...arcs])
      if (method !== 'POST') expect({ path, key }).toEqual({ path, key: expect.any(String) });

    const [ours, theirs] = [this.ledger.all(true), this.ledger.all(false)];
    expect(
      theirs
        .filter(({ key, writers }) => writers.has('holdfast') && !HOLDFASTS_NAME.test(key))
        .map(({ key }) => key),
    ).toEqual([]);
    expect(
      ours.filter(({ writers }) => writers.has(ARC_FIELD_MANAGER)).map(({ key }) => key),
    ).toEqual([]);
    for (const { key, finalizers, metadataKeys } of ours)
      expect({
        key,
        marks: [...finalizers, ...metadataKeys].filter((each) => /actions[-.]/.test(each)),
      }).toEqual({ key, marks: [] });

    const removed = this.world.simulator
      .requests()
      .filter(({ endpoint, status }) => endpoint.startsWith('DELETE ') && status === 204);
    const whose = removed.map(({ path, credential }) => ({
      by: credential,
      ...this.#registered.get(Number(path.split('/').at(-1))),
    }));
    expect(whose.filter(({ by, holdfasts: isOurs }) => isOurs !== (by === 'default'))).toEqual([]);
    const registered = [...this.#registered.values()];
    return {
      holdfastsObjects: ours.length,
      othersObjects: theirs.length,
      holdfastsWrites: holdfasts.length,
      arcsWrites: arcs.length,
      holdfastsRegistrations: registered.filter((each) => each.holdfasts).length,
      othersRegistrations: registered.filter((each) => !each.holdfasts).length,
      removedByHoldfast: whose.filter(({ by }) => by === 'default').length,
      removedByArc: whose.filter(({ by }) => by === 'arc').length,
    };
  }

  async close(): Promise<void> {
    const { arc, runners, agent, ledger, world, service, byWorker, byAdmin, home, other, folder } =
      this.#parts;
    this.#over = true;
    await this.#noting;
    await arc.close();
    await runners.close();
    await agent.stop();
    await ledger.close();
    await world.close();
    await service.close();
    for (const proxy of [byWorker, byAdmin]) await proxy.close();
    for (const namespace of [home, other]) await namespace.remove();
    await rm(folder, { recursive: true });
  }

  /** Checked after every change. */
  #noteRegistrations(): boolean {
    for (const each of this.world.simulator.runners())
      this.#registered.set(each.id, { name: each.name, holdfasts: isHoldfasts(each) });
    return this.#over;
  }
}

const isHoldfasts = ({ labels }: SimulatedRegistration): boolean => labels.some(isLocationLabel);
