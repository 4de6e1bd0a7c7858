/**
 * The lab: the real components (Temporal, Kubernetes) on this machine, for development, tests, demo
 * and benchmarks.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { cleanUp } from './cleanUp.ts';
import type { Component, Lab, LabRecord } from './component.ts';
import { COMPONENTS, componentsOf } from './components/index.ts';
import { giteaAccess } from './components/gitea.ts';
import { s3Access } from './components/versitygw.ts';
import { temporalUiUrl } from './components/temporal.ts';
import { NAMESPACE, temporalAddress } from './temporalNamespace.ts';
import { apiServerUrl, kubeconfigPath } from './kubernetesFiles.ts';
import { withLock } from './lock.ts';
import type {
  ComponentName,
  ComponentStatus,
  DownOptions,
  LabOptions,
  LabState,
  LabStatus,
  TemporalServer,
} from './options.ts';
import type { ImageDefinition } from './images/definitions.ts';
import { importImages, staleImages } from './images/import.ts';
import { hostAddress } from './podNetwork.ts';
import { canListen } from './ports.ts';
import { isAlive } from './process.ts';
import {
  createLabFolder,
  labFolder,
  lockPath,
  logPath,
  newRecord,
  readProcess,
  readRecord,
  writeRecord,
} from './store.ts';
import { isUp, resolveBinaries, startComponent, stopComponent } from './supervise.ts';

export type {
  ComponentName,
  ComponentStatus,
  DownOptions,
  LabOptions,
  LabState,
  LabStatus,
  TemporalServer,
} from './options.ts';
export { ComponentUnavailableError, TEMPORAL_SERVERS } from './options.ts';

/** All that a lab keeps in its folder, but the logs. */
const DATA = [
  'temporal',
  'temporal-cluster',
  'postgres',
  's3',
  'gitea',
  'etcd',
  'kubernetes',
  'containerd',
  'kubelet',
  'processes',
  'kubeconfig',
  'lab.json',
];

const silent = (): void => undefined;

/**
 * Starts the requested components. Healthy components keep running, missing ones are added, and
 * ended ones are restarted with their data. Components that run but were not requested are not
 * changed. Fast if all run. Several processes can call it at the same time.
 * @throws ComponentUnavailableError if a component is not available on this machine
 * @throws ComponentFailedError if a component does not become ready
 */
export async function up(options: LabOptions = {}): Promise<LabState> {
  const folder = await labFolder(options.stateDir);
  const known = await readRecord(folder);
  if (known !== undefined) {
    const target = { ...known, ...merge(known, options) };
    const lab = labOf(folder, known, options.progress);
    const wanted = wantedComponents(target, options);
    if (
      covers(known, target) &&
      portsAgree(known, options) &&
      (await all(wanted, (component) => isUp(lab, component))) &&
      (await imagesToImport(lab, wanted)).length === 0
    )
      return stateOf(lab);
  }

  const progress = options.progress ?? silent;
  const dir = await createLabFolder(folder);
  return withLock(
    lockPath(dir),
    () => upLocked(dir, options),
    () => progress(`waiting for another process that works on the lab in ${dir}`),
  );
}

async function upLocked(dir: string, options: LabOptions): Promise<LabState> {
  const known = await readRecord(dir);
  const record = known ?? newRecord(dir);
  const target = merge(record, options);
  const lab = labOf(dir, record, options.progress);
  if (known === undefined) await cleanUp(lab); // its folder was deleted while it ran
  if (!portsAgree(record, options)) {
    if (
      await any(
        componentsOf({ ...record, kubernetes: false, nodes: 'none', s3: false, gitea: false }),
        (component) => isUp(lab, component),
      )
    )
      throw new Error(
        `the lab in ${dir} runs Temporal on port ${record.ports['temporal']} already: run \`lab down\` first to change ports`,
      );
    for (const [key, port] of [['temporal', options.temporalPort], ['temporal-ui', options.uiPort]] as const) {
      if (port === undefined) continue;
      if (!(await canListen(port))) throw new Error(`port ${port} on 127.0.0.1 is taken by another process: choose another`);
      record.ports[key] = port;
    } // prettier-ignore
  }
  const wanted = wantedComponents({ ...record, ...target }, options);
  for (const component of wanted) await component.check?.(lab);
  const missing: Component[] = [];
  for (const component of wanted) if (!(await isUp(lab, component))) missing.push(component);
  await resolveBinaries(lab, missing);
  Object.assign(record, target);
  await writeRecord(dir, record);
  await startInOrder(lab, missing);
  const images = await imagesToImport(lab, wanted);
  if (images.length > 0) {
    await resolveBinaries(lab, [COMPONENTS.containerd]);
    await importImages(lab, images);
  }
  return stateOf(lab);
}

async function imagesToImport(
  lab: Lab,
  wanted: readonly Component[],
): Promise<Awaited<ReturnType<typeof staleImages>>> {
  return wanted.includes(COMPONENTS.containerd) ? staleImages(lab) : [];
}

/**
 * Stops all components. Leaves no process, mount, network namespace, bridge or cgroup of this lab.
 * Data and logs remain, unless `purge` is set. Does nothing if there is no lab.
 */
export async function down(options: DownOptions = {}): Promise<void> {
  const dir = await labFolder(options.stateDir);
  const record = await readRecord(dir);
  if (record === undefined) return;
  const progress = options.progress ?? silent;
  await withLock(
    lockPath(dir),
    async () => {
      const stopping = new Map<ComponentName, Promise<void>>();
      const stop = (component: Component): Promise<void> => {
        const known = stopping.get(component.name);
        if (known !== undefined) return known;
        const users = Object.values(COMPONENTS).filter((other) =>
          other.after.includes(component.name),
        );
        const done = Promise.all(users.map(stop)).then(() => stopComponent(dir, component));
        stopping.set(component.name, done);
        return done;
      };
      await Promise.all(Object.values(COMPONENTS).map(stop));
      await cleanUp(labOf(dir, record, progress));
      await writeRecord(dir, {
        ...record,
        temporal: 'none',
        kubernetes: false,
        nodes: 'none',
        s3: false,
        gitea: false,
      });
      if (options.purge === true)
        for (const data of DATA) await rm(join(dir, data), { recursive: true, force: true });
      progress('the lab is down');
    },
    () => progress(`waiting for another process that works on the lab in ${dir}`),
  );
}

/** Returns the components of the lab and their state. */
export async function status(options: { stateDir?: string } = {}): Promise<LabStatus> {
  const dir = await labFolder(options.stateDir);
  const record = await readRecord(dir);
  if (record === undefined) return { stateDir: dir, components: {} };
  const lab = labOf(dir, record, undefined);
  const entries = componentsOf(record).map(
    async (component): Promise<[ComponentName, ComponentStatus]> => {
      const identity = await readProcess(dir, component.name);
      const log = logPath(dir, component.name);
      if (identity === undefined || !(await isAlive(identity)))
        return [component.name, { state: 'down', log }];
      return [
        component.name,
        { state: (await component.healthy(lab)) ? 'healthy' : 'unhealthy', pid: identity.pid, log },
      ];
    },
  );
  return { ...stateOf(lab), components: Object.fromEntries(await Promise.all(entries)) };
}

/** Puts further images on the node of a lab with a kubelet. Quick when it has them. */
export async function addImages(
  stateDir: string,
  images: readonly ImageDefinition[],
  progress: (line: string) => void = silent,
): Promise<void> {
  const dir = await labFolder(stateDir);
  await withLock(lockPath(dir), async () => {
    const record = await readRecord(dir);
    if (record?.nodes !== 'kubelet')
      throw new Error(`the lab in ${dir} has no kubelet: run \`lab up --nodes kubelet\` first`);
    const lab = labOf(dir, record, progress);
    const stale = await staleImages(lab, images);
    if (stale.length === 0) return;
    await resolveBinaries(lab, [COMPONENTS.containerd]);
    await importImages(lab, stale);
  });
}

/**
 * Stops one component and keeps its data. For tests in which a component is unavailable.
 * @param signal - default: SIGKILL
 */
export async function kill(
  stateDir: string,
  name: ComponentName,
  options: { signal?: NodeJS.Signals } = {},
): Promise<void> {
  const dir = await labFolder(stateDir);
  await withLock(lockPath(dir), () =>
    stopComponent(dir, COMPONENTS[name], options.signal ?? 'SIGKILL'),
  );
}

/** Starts one component of a lab again, on its data and its ports, and waits until it is ready. */
export async function start(stateDir: string, name: ComponentName): Promise<void> {
  const dir = await labFolder(stateDir);
  await withLock(lockPath(dir), () => startOne(dir, name));
}

/**
 * Stops one component and starts it with the same data and ports.
 * @param signal - default: the signal for a graceful stop of this component
 */
export async function restart(
  stateDir: string,
  name: ComponentName,
  options: { signal?: NodeJS.Signals } = {},
): Promise<void> {
  const dir = await labFolder(stateDir);
  await withLock(lockPath(dir), async () => {
    await stopComponent(dir, COMPONENTS[name], options.signal);
    await startOne(dir, name);
  });
}

async function startOne(dir: string, name: ComponentName): Promise<void> {
  const record = await readRecord(dir);
  if (record === undefined || !componentsOf(record).includes(COMPONENTS[name]))
    throw new Error(`the lab in ${dir} has no ${name}: run \`lab up\` first`);
  const lab = labOf(dir, record, undefined);
  await resolveBinaries(lab, [COMPONENTS[name]]);
  await startComponent(lab, COMPONENTS[name]);
}

async function startInOrder(lab: Lab, components: readonly Component[]): Promise<void> {
  const starting = new Map<ComponentName, Promise<void>>();
  for (const component of components) {
    const before = component.after.map((name) => starting.get(name) ?? Promise.resolve());
    starting.set(
      component.name,
      Promise.all(before).then(() => startComponent(lab, component)),
    );
  }
  const results = await Promise.allSettled(starting.values());
  const failed = results.find((result) => result.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}

type Parts = Pick<LabRecord, 'temporal' | 'kubernetes' | 'nodes' | 's3' | 'gitea'>;

/**
 * Returns the parts of the lab after `up`.
 * @throws Error if real and fake nodes, or two Temporal servers, would be mixed
 */
function merge(record: LabRecord, options: LabOptions): Parts {
  const nodes = options.nodes ?? 'none';
  if (nodes !== 'none' && record.nodes !== 'none' && nodes !== record.nodes) {
    throw new Error(
      `this lab has ${record.nodes} nodes: run \`lab down\` first, or use another --state-dir for ${nodes}`,
    );
  }
  if (nodes !== 'none' && options.kubernetes === false)
    throw new Error(`nodes "${nodes}" need Kubernetes`);
  return {
    temporal: mergeTemporal(record.temporal, options),
    kubernetes: record.kubernetes || (options.kubernetes ?? true),
    nodes: nodes === 'none' ? record.nodes : nodes,
    s3: record.s3 === true || options.s3 === true,
    gitea: record.gitea === true || options.gitea === true,
  };
}

function mergeTemporal(
  known: LabRecord['temporal'],
  { temporal = true, uiPort }: LabOptions,
): LabRecord['temporal'] {
  if (temporal === false) return known;
  const running = known === 'none' ? 'dev' : known;
  const wanted: TemporalServer = temporal === true ? running : temporal;
  if (known !== 'none' && wanted !== known)
    throw new Error(
      `this lab has Temporal as ${known}: run \`lab down\` first, or use another --state-dir for ${wanted}`,
    );
  if (wanted === 'cluster' && uiPort !== undefined)
    throw new Error('Temporal as a cluster has no UI: leave out --ui-port');
  return wanted;
}

/**
 * Returns the components that this call must start. A part that it did not request is left alone,
 * because a test may have stopped it.
 */
function wantedComponents(target: Parts, options: LabOptions): Component[] {
  const kubernetes = options.kubernetes ?? true;
  return componentsOf({
    temporal: options.temporal === false ? 'none' : target.temporal,
    kubernetes,
    nodes: kubernetes ? target.nodes : 'none',
    s3: options.s3 === true,
    gitea: options.gitea === true,
  });
}

function covers(known: LabRecord, target: Parts): boolean {
  return (
    known.temporal === target.temporal &&
    known.kubernetes === target.kubernetes &&
    known.nodes === target.nodes &&
    (known.s3 === true) === (target.s3 === true) &&
    (known.gitea === true) === (target.gitea === true)
  );
}

function portsAgree({ ports }: LabRecord, { temporalPort, uiPort }: LabOptions): boolean {
  return (
    (temporalPort ?? ports['temporal']) === ports['temporal'] &&
    (uiPort ?? ports['temporal-ui']) === ports['temporal-ui']
  );
}

function labOf(
  dir: string,
  record: LabRecord,
  progress: ((line: string) => void) | undefined,
): Lab {
  return { dir, record, binaries: {}, progress: progress ?? silent };
}

/**
 * Returns the state of the lab. A component without a port is omitted: another process is adding
 * it.
 */
function stateOf(lab: Lab): LabState {
  const { record } = lab;
  const has = (key: string): boolean => record.ports[key] !== undefined;
  const gitea = record.gitea === true ? giteaAccess(lab) : undefined;
  return {
    stateDir: lab.dir,
    ...(record.temporal === 'none'
      ? {}
      : {
          temporal: {
            address: temporalAddress(lab),
            ...(record.temporal === 'dev' ? { uiUrl: temporalUiUrl(lab) } : {}),
            namespace: NAMESPACE,
          },
        }),
    ...(record.kubernetes && has('kube-apiserver')
      ? { kubernetes: { kubeconfig: kubeconfigPath(lab), server: apiServerUrl(lab) } }
      : {}),
    ...(record.nodes === 'none' ? {} : { nodes: record.nodes }),
    ...(record.s3 === true && has('s3') ? { s3: s3Access(lab) } : {}),
    ...(gitea === undefined ? {} : { gitea }),
    ...(record.nodes === 'kubelet' ? { hostAddress: hostAddress(record) } : {}),
  };
}

async function all<T>(items: readonly T[], test: (item: T) => Promise<boolean>): Promise<boolean> {
  return (await Promise.all(items.map(test))).every(Boolean);
}

async function any<T>(items: readonly T[], test: (item: T) => Promise<boolean>): Promise<boolean> {
  return (await Promise.all(items.map(test))).some(Boolean);
}
