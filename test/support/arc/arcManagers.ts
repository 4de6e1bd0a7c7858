/**
 * actions-runner-controller as its users run it: the controller managers of both of its modes, with
 * its custom resource definitions, role and admission webhooks.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { openSync } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  ApiextensionsV1Api,
  KubernetesObjectApi,
  type KubeConfig,
  type KubernetesObject,
} from '@kubernetes/client-node';
import { end, track } from '../../../tools/bench/processes/child.ts';
import { freePort } from '../../../tools/lab/ports.ts';
import { resolveBinary } from '../../../tools/lab/resolve.ts';
import { BINARIES } from '../../../tools/lab/versions.ts';
import { startApiProxy, type ApiProxy } from '../apiProxy.ts';
import { objectsOf, type Manifest } from '../chart.ts';
import { actAs } from '../clusterAccounts.ts';
import { goModuleFolder } from '../goModule.ts';
import type { TestNamespace } from '../pods.ts';
import { StrictApi } from '../strictApi.ts';
import { until } from '../until.ts';

export const ARC_VERSION = BINARIES['actions-runner-controller'].version;
/** The field manager of ARC in the API server. */
export const ARC_FIELD_MANAGER = BINARIES['actions-runner-controller'].name;
const ACCOUNT = 'controller-manager';
/** Interval between full reconciliations. */
const SYNC_PERIOD = '5s';

/** The program, and the folder of its Go module. */
export interface ArcFiles {
  readonly program: string;
  readonly module: string;
}

/** @throws ComponentUnavailableError */
export async function arcFiles(): Promise<ArcFiles> {
  const program = await resolveBinary('actions-runner-controller', {
    progress: (line) => process.stderr.write(`[lab] ${line}\n`),
  });
  return {
    program,
    module: await goModuleFolder(`github.com/actions/actions-runner-controller@v${ARC_VERSION}`),
  };
}

export interface ArcPlace {
  /** Its own namespace, with its service account and its listeners. */
  readonly home: TestNamespace;
  /** Namespaces whose pods are passed to its admission webhook. */
  readonly namespaces: readonly string[];
  /** Folder for its files. */
  readonly folder: string;
  readonly githubUrl: string;
  readonly token: string;
}

export class ArcManagers {
  /** The proxy of all its requests to the API server. */
  readonly proxy: ApiProxy;
  readonly #files: ArcFiles;
  readonly #place: ArcPlace;
  readonly #objects: KubernetesObjectApi;
  readonly #made: KubernetesObject[] = [];
  readonly #processes: ChildProcess[] = [];

  private constructor(files: ArcFiles, place: ArcPlace, proxy: ApiProxy) {
    this.proxy = proxy;
    this.#files = files;
    this.#place = place;
    this.#objects = place.home.kubeConfig.makeApiClient(KubernetesObjectApi);
  }

  static async open(files: ArcFiles, place: ArcPlace): Promise<ArcManagers> {
    const { home } = place;
    const role = objectsOf(await readFile(join(files.module, 'config/rbac/role.yaml'), 'utf8')).map(
      (each) => ({ ...each, metadata: { name: home.name } }),
    );
    const binding = {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: home.name },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: home.name },
      subjects: [{ kind: 'ServiceAccount', name: ACCOUNT, namespace: home.name }],
    };
    await home.core.createNamespacedServiceAccount({
      namespace: home.name,
      body: { metadata: { name: ACCOUNT } },
    });
    const account = await actAs(ACCOUNT, {
      namespace: home.name,
      core: home.core,
      kubeConfig: home.kubeConfig,
    });
    const managers = new ArcManagers(files, place, await startApiProxy(account));
    for (const object of [...role, binding]) await managers.#make(object);
    await managers.#define(home.kubeConfig);
    await writeFile(managers.#kubeconfig, managers.proxy.kubeConfig.exportConfig());
    return managers;
  }

  get #kubeconfig(): string {
    return join(this.#place.folder, 'arc.kubeconfig');
  }

  /** Returns their logs. */
  async logs(): Promise<string> {
    const { folder } = this.#place;
    const names = (await readdir(folder)).filter((name) => name.endsWith('.log'));
    return (
      await Promise.all(names.map(async (name) => await readFile(join(folder, name), 'utf8')))
    ).join('\n');
  }

  /** The first mode (actions.summerwind.dev), admission webhooks included. */
  async startFirstMode(): Promise<void> {
    const { folder, githubUrl, token } = this.#place;
    const port = await freePort();
    const ca = await this.#certificate();
    this.#start(
      'first-mode',
      ['--port', String(port), '--github-url', githubUrl, '--github-token', token],
      { TMPDIR: folder },
    );
    await until(
      'its webhook to listen',
      async () =>
        await fetch(`http://127.0.0.1:${port}`).then(
          () => true,
          () => false,
        ),
    );
    for (const configuration of objectsOf(
      await readFile(join(this.#files.module, 'config/webhook/manifests.yaml'), 'utf8'),
    ) as WebhookConfiguration[]) {
      const webhooks = configuration.webhooks.map((webhook) => ({
        ...webhook,
        // This cluster does not route Services.
        clientConfig: {
          url: `https://127.0.0.1:${port}${webhook.clientConfig.service.path}`,
          caBundle: ca,
        },
        namespaceSelector: {
          matchExpressions: [
            { key: 'kubernetes.io/metadata.name', operator: 'In', values: this.#place.namespaces },
          ],
        },
      }));
      await this.#make({
        ...configuration,
        metadata: { name: this.#place.home.name },
        webhooks,
      } as Manifest);
    }
  }

  /** Scale sets (actions.github.com). */
  startScaleSets(): void {
    this.#start('scale-sets', ['--auto-scaling-runner-set-only'], {
      CONTROLLER_MANAGER_POD_NAMESPACE: this.#place.home.name,
      CONTROLLER_MANAGER_CONTAINER_IMAGE: 'arc',
    });
  }

  /** @throws Error when one of them has ended */
  check(): void {
    for (const { exitCode, signalCode } of this.#processes)
      if (exitCode !== null || signalCode !== null)
        throw new Error(`a manager of ARC has ended: ${exitCode ?? signalCode}`);
  }

  async close(): Promise<void> {
    await Promise.all(this.#processes.map(async (each) => await end(each, 'SIGKILL')));
    for (const object of this.#made.toReversed()) await this.#objects.delete(object);
    await this.proxy.close();
  }

  #start(name: string, args: readonly string[], env: Record<string, string>): void {
    const { folder } = this.#place;
    const log = openSync(join(folder, `${name}.log`), 'a');
    const all = [
      '--kubeconfig',
      this.#kubeconfig,
      '--metrics-addr',
      '0',
      '--sync-period',
      SYNC_PERIOD,
      ...args,
    ];
    this.#processes.push(
      track(
        spawn(this.#files.program, all, {
          cwd: folder,
          env: { HOME: folder, ...env },
          stdio: ['ignore', log, log],
        }),
      ),
    );
  }

  /**
   * Writes the certificate to where the manager reads it.
   * @returns the CA certificate in base64
   */
  async #certificate(): Promise<string> {
    const folder = join(this.#place.folder, 'k8s-webhook-server', 'serving-certs');
    await mkdir(folder, { recursive: true });
    const [key, certificate] = [join(folder, 'tls.key'), join(folder, 'tls.crt')];
    await promisify(execFile)('openssl', [
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:prime256v1',
      '-nodes',
      '-days',
      '2',
      '-keyout',
      key,
      '-out',
      certificate,
      '-subj',
      '/CN=arc',
      '-addext',
      'subjectAltName=IP:127.0.0.1',
    ]);
    return (await readFile(certificate)).toString('base64');
  }

  async #define(kubeConfig: KubeConfig): Promise<void> {
    const folder = join(this.#files.module, 'config/crd/bases');
    const extensions = kubeConfig.makeApiClient(ApiextensionsV1Api);
    const names: string[] = [];
    for (const file of await readdir(folder)) {
      for (const definition of objectsOf(await readFile(join(folder, file), 'utf8'))) {
        await this.#make(definition);
        names.push(definition.metadata.name ?? '');
      }
    }
    const isEstablished = async (name: string): Promise<boolean> =>
      (await extensions.readCustomResourceDefinition({ name })).status?.conditions?.some(
        ({ type, status }) => type === 'Established' && status === 'True',
      ) === true;
    await until("ARC's kinds to be served", async () =>
      (await Promise.all(names.map(isEstablished))).every(Boolean),
    );
  }

  /** Creates an object as it is. The typed client would omit fields that it does not know. */
  async #make(object: Manifest): Promise<void> {
    const refusal = await new StrictApi(this.#place.home.kubeConfig).refusal(object, {
      dryRun: false,
    });
    if (refusal !== undefined) throw new Error(refusal);
    this.#made.push(object as KubernetesObject);
  }
}

interface WebhookConfiguration extends Manifest {
  readonly webhooks: readonly {
    readonly clientConfig: { readonly service: { readonly path: string } };
  }[];
}
