import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { randomUUID } from 'node:crypto';
import { mkdir, open, readdir, rename, rm, stat, unlink, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ComputeError, type Compute, type DeletionOptions, type PodListener, type Registration } from '../../ports.ts';
import { podName } from '../naming.ts';
import { createFile, hasCode, readJson, replaceFile } from './atomicFile.ts';
import { baseEnvironment, runnerCommand, runnerEnvironment } from './runnerCommand.ts';
import { defaultStateDir, makeStateFolders, POD_FILE, readPod, removePod, ring, stateFolders, type PodOwner, type PodRecord, type ProcessPodSpec } from './podFolder.ts';
import { logTail } from './logTail.ts';
import { makeClaimFolders, removeClaimFolders } from './claimFolders.ts';
import { observePods } from './observePods.ts';
import { viewOfRecord } from './viewOfRecord.ts';
import { watchPods } from './folderWatch.ts';
import { signalProcess } from './processIdentity.ts';
import { mergeStopRequest } from './stopRequest.ts';
import type { PodRef, PodRequest, PodView, RunnerIdentity } from '../../../core/domain/pod.ts';

export interface ProcessComputeOptions {
  /** Where all state is; one per installation and machine, see podFolder.ts. Default: {@link defaultStateDir}. */
  readonly stateDir?: string;
  /** The runner's command when a request names none (HOLDFAST_RUNNER_COMMAND). @default none: such a request is invalid */
  readonly command?: readonly string[];
  /** Between two complete looks of a watch, in ms: how late a killed wrapper is noticed at worst. @default 2000 */
  readonly rescanMs?: number;
  /** Warnings of the watch, and of pods that were lost; a pino logger fits. @default none */
  readonly logger?: { warn(fields: object, message: string): void };
}

/** What a crash left in trash/ is removed once it is this old: until then somebody may be at work on it. */
const TRASH_AGE_MS = 60_000;
const WRAPPER = fileURLToPath(new URL(import.meta.url.endsWith('.ts') ? './wrapper.ts' : './wrapper.js', import.meta.url));

/**
 * Runs runners as local processes, for laptops, tests and the demo: no isolation, no image; a request's `image`, `template` and
 * `namespace` have no meaning here. A runner outlives the worker that started it, and any worker process with the same state
 * directory carries on. (A service manager that kills the worker's whole control group kills the runners too; for systemd set
 * `KillMode=process`.)
 */
export function createProcessCompute(options: ProcessComputeOptions = {}): Compute {
  const folders = stateFolders(options.stateDir ?? defaultStateDir());
  const { logger } = options;
  const registrationFile = (identity: RunnerIdentity): string => join(folders.registrations, `${podName(identity)}.json`);
  const observe = (names: readonly string[]): Promise<Map<string, PodRecord>> =>
    observePods(folders, names, (pod) => logger?.warn(pod, 'runner process lost: its wrapper died without telling how the runner ended; removed'));

  async function createPod(request: PodRequest, registration: Registration | undefined): Promise<PodView> {
    const name = podName(request.identity);
    const command = runnerCommand(request, options.command);
    await makeStateFolders(folders);
    const secretEnv = runnerEnvironment('registration', registration?.env);
    const spec: ProcessPodSpec = {
      name,
      uid: randomUUID(),
      workflowId: request.identity.workflowId,
      node: hostname(),
      createdAt: new Date().toISOString(),
      command,
      env: { ...runnerEnvironment('env', request.env), ...(await makeClaimFolders(folders, request)) },
      labels: request.labels,
      terminationGracePeriodSeconds: request.terminationGracePeriodSeconds,
    };
    let pod = (await observe([name])).get(name);
    if (pod === undefined) {
      await placeFolder(spec, secretEnv);
      // Ours, or that of another worker which was faster.
      pod = await readPod(folders, name);
      if (pod === undefined) throw new ComputeError('unavailable', `${name} was removed while it was being created`);
    }
    // Also when somebody else made the folder: they may have died before they started a wrapper. Of several exactly one goes on.
    if (pod.owner === undefined) await startWrapper(name);
    return viewOfRecord(pod);
  }

  /** Puts a complete folder in the pod's place, unless there is one: rename(2) does not replace a folder that has content. */
  async function placeFolder(spec: ProcessPodSpec, secretEnv: Readonly<Record<string, string>>): Promise<void> {
    const built = join(folders.trash, `new-${spec.uid}`);
    await mkdir(join(built, POD_FILE.work), { recursive: true, mode: 0o700 });
    await writeFile(join(built, POD_FILE.secretEnv), JSON.stringify(secretEnv), { mode: 0o600, flush: true });
    await replaceFile(join(built, POD_FILE.spec), JSON.stringify(spec));
    try {
      await rename(built, join(folders.pods, spec.name));
    } catch (error) {
      await rm(built, { recursive: true, force: true });
      if (!hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error;
    }
  }

  async function startWrapper(name: string): Promise<void> {
    const folder = join(folders.pods, name);
    const log = await open(join(folder, POD_FILE.wrapperLog), 'a', 0o600);
    try {
      // The name is there for people who read ps. The worker's own environment holds secrets: the wrapper gets a clean one.
      const wrapper = spawn(process.execPath, [WRAPPER, name], {
        cwd: folder,
        env: baseEnvironment(process.env),
        detached: true,
        stdio: ['ignore', log.fd, log.fd],
      });
      wrapper.unref();
      await once(wrapper, 'spawn');
    } finally {
      await log.close();
    }
  }

  async function deletePod(pod: PodRef, deletion: DeletionOptions = {}): Promise<'gone' | 'terminating'> {
    const found = (await observe([pod.name])).get(pod.name);
    if (found === undefined || found.spec.uid !== pod.uid) return 'gone';
    const folder = join(folders.pods, pod.name);
    const remove = async (): Promise<'gone'> => {
      await removePod(folders, pod.name, pod.uid);
      return 'gone';
    };
    if (found.exit !== undefined) return remove();
    if (found.owner === undefined) {
      // Take the place of the wrapper, so that none that is just starting can start the runner.
      const nobody: PodOwner = {};
      if (await createFile(join(folder, POD_FILE.owner), JSON.stringify(nobody))) return remove();
    }
    const grace = deletion.gracePeriodSeconds ?? found.spec.terminationGracePeriodSeconds;
    const stop = mergeStopRequest(found.stop, grace, deletion.reason, Date.now());
    if (stop !== undefined) {
      await replaceFile(join(folder, POD_FILE.stop), JSON.stringify(stop));
      await ring(folder);
    }
    const now = await readPod(folders, pod.name);
    if (now === undefined || now.spec.uid !== pod.uid) return 'gone';
    // It ended in this moment; its wrapper may not have seen that somebody wants it removed.
    if (now.exit !== undefined) return remove();
    if (stop !== undefined && now.owner?.wrapper !== undefined) await signalProcess(now.owner.wrapper, 'SIGTERM');
    return 'terminating';
  }

  async function emptyTrash(): Promise<void> {
    for (const entry of await readdir(folders.trash)) {
      const path = join(folders.trash, entry);
      const age = await stat(path).then(
        ({ mtimeMs }) => Date.now() - mtimeMs,
        // Not there any more: its owner has removed it.
        () => 0,
      );
      if (age > TRASH_AGE_MS) await rm(path, { recursive: true, force: true });
    }
  }

  async function watch(listener: PodListener): Promise<{ stop(): Promise<void>; synced(): boolean }> {
    await makeStateFolders(folders);
    await emptyTrash();
    return watchPods({
      folders,
      listener,
      observe,
      rescanMs: options.rescanMs ?? 2_000,
      failed: (error, what) => logger?.warn({ err: error, what }, 'watch of the runner processes: a step failed, it goes on'),
    });
  }

  function faults(request: Omit<PodRequest, 'identity'>): string[] {
    const { supervision } = request;
    if (supervision?.mode === 'inject' || supervision?.mode === 'image') return ['supervisor: processes run without it; leave it out, or run on Kubernetes'];
    if (supervision !== undefined && supervision.onTerm !== 'stop') return [`onTerm: "${supervision.onTerm}" needs the supervisor, and processes run without it; leave it out, or run on Kubernetes`];
    try {
      runnerCommand(request, options.command);
      runnerEnvironment('env', request.env);
      return [];
    } catch (error) {
      if (error instanceof ComputeError) return [error.message];
      throw error;
    }
  }

  return {
    kind: 'process',
    podName,
    faults,
    readRegistrationSecret: (identity) => guard('read the registration of', podName(identity), () => readJson<Registration>(registrationFile(identity))),
    storeRegistrationSecret: (identity, registration) =>
      guard('store the registration of', podName(identity), async () => {
        await makeStateFolders(folders);
        const file = registrationFile(identity);
        if (await createFile(file, JSON.stringify(registration))) return registration;
        return (await readJson<Registration>(file)) ?? registration;
      }),
    deleteRegistrationSecret: (identity) =>
      guard('delete the registration of', podName(identity), async () => {
        await unlink(registrationFile(identity)).catch((error: unknown) => {
          if (!hasCode(error, 'ENOENT')) throw error;
        });
      }),
    deleteClaims: (identity, claims) => guard('delete the claims of', podName(identity), () => removeClaimFolders(folders, identity, claims)),
    // One machine: what has ended here has ended.
    nodeState: () => Promise.resolve('ready'),
    tailLog: ({ name }, maxBytes) => guard('read the log of', name, () => logTail(join(folders.pods, name, POD_FILE.output), maxBytes)),
    createPod: (request, registration) => guard('start', podName(request.identity), () => createPod(request, registration)),
    observe: ({ name, uid }) =>
      guard('look at', name, async () => {
        const found = (await observe([name])).get(name);
        return found === undefined || (uid !== undefined && found.spec.uid !== uid) ? undefined : viewOfRecord(found);
      }),
    deletePod: (pod, deletion) =>
      guard('delete', pod.name, async () => {
        try {
          return await deletePod(pod, deletion);
        } catch (error) {
          // Somebody else removed the folder between two steps.
          if (hasCode(error, 'ENOENT') && (await readPod(folders, pod.name))?.spec.uid !== pod.uid) return 'gone';
          throw error;
        }
      }),
    list: () =>
      guard('list', folders.pods, async () => {
        await makeStateFolders(folders);
        return [...(await observe(await readdir(folders.pods))).values()].map(viewOfRecord);
      }),
    watch: (listener) => guard('watch', folders.pods, () => watch(listener)),
  };
}

/** Turns errors of the operating system into the port's. */
async function guard<T>(what: string, name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ComputeError) throw error;
    const message = `cannot ${what} ${name}: ${error instanceof Error ? error.message : String(error)}`;
    throw new ComputeError(hasCode(error, 'EACCES', 'EPERM', 'EROFS') ? 'forbidden' : 'unavailable', message, { cause: error });
  }
}
