import { readdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { ComputeError } from '../../ports/computeError.ts';
import type { Compute } from '../../ports/compute.ts';
import type { Registration } from '../../ports/ciServer.ts';
import { podName } from '../naming.ts';
import { createFile, hasCode, readJson } from './atomicFile.ts';
import { removeClaimFolders } from './claimDirectories.ts';
import { deletePod } from './deletePod.ts';
import { logStream } from './logStream.ts';
import { logTail } from './logTail.ts';
import { observePods, type ObservePods } from './observePods.ts';
import { isOwnPod, isPodOf, requirePodName } from './podOwnership.ts';
import {
  defaultStateDir,
  emptyTrash,
  makeStateFolders,
  POD_FILE,
  readPod,
  stateFolders,
  type StateDirectories,
} from './podDirectory.ts';
import { PodFolderWatch } from './podDirectoryWatch.ts';
import { processErrors, runnerCommand } from './runnerCommand.ts';
import { startPod } from './startPod.ts';
import { stateFolderId } from './stateDirectoryId.ts';
import { toPodView } from './podView.ts';
import type { RunnerIdentity } from '../../../core/domain/pod.ts';
import { errorMessage } from '../../../core/domain/errorMessage.ts';

/** Options of {@link createProcessCompute}. */
export interface ProcessComputeOptions {
  /**
   * State directory, one per installation and machine; see podDirectory.ts.
   * @default `defaultStateDir`
   */
  readonly stateDir?: string;
  /**
   * Name of the installation, part of the location of its runners.
   * @default "holdfast"
   */
  readonly installation?: string;
  /**
   * Command of runners whose request names none (HOLDFAST_RUNNER_COMMAND).
   * @default none: such a request is invalid
   */
  readonly command?: readonly string[];
  /**
   * Whether requests may set the command, arguments and environment variables. Anyone who can start
   * a workflow then runs any command as the user of this process.
   * @default false
   */
  readonly anyCommand?: boolean;
  /**
   * Interval between two complete scans of a watch (ms), the maximum delay until a killed wrapper
   * is noticed.
   * @default 2000
   */
  readonly rescanMs?: number;
  /**
   * Logger of warnings about the watch and lost pods, such as a pino logger.
   * @default nothing is logged
   */
  readonly logger?: { warn(fields: object, message: string): void };
}

/**
 * Creates the compute that runs runners as local processes, for laptops, tests and the demo. There
 * is no isolation and no image: `image`, `template` and `namespace` of a request have no effect.
 * Runners outlive the worker, and every worker process with the same state directory continues with
 * them. A service manager that kills the whole control group of the worker kills its runners too.
 * For systemd, set `KillMode=process`.
 */
export function createProcessCompute(options: ProcessComputeOptions = {}): Compute {
  const { stateDir = defaultStateDir(), installation = 'holdfast', logger } = options;
  const folders = stateFolders(stateDir);
  const observe: ObservePods = async (names) =>
    await observePods(folders, names, (pod) =>
      logger?.warn(
        pod,
        'runner process lost: its wrapper died without recording how the runner ended; removed',
      ),
    );
  let cluster: string | undefined;
  return {
    kind: 'process',
    podName,

    location: () =>
      guard('read the ID of', stateDir, async () => {
        cluster ??= await stateFolderId(stateDir);
        return { compute: 'process', cluster, installation };
      }),

    ...registrationSecrets(folders),
    ...podCalls(folders, observe, options),
    ...claimCalls(folders),
    ...logCalls(folders),
    ...podLists(folders, observe, options),
  };
}

/** Calls about the registrations, which are files. */
function registrationSecrets(
  folders: StateDirectories,
): Pick<
  Compute,
  'readRegistrationSecret' | 'storeRegistrationSecret' | 'deleteRegistrationSecret'
> {
  const registrationFile = (identity: RunnerIdentity): string =>
    join(folders.registrations, `${podName(identity)}.json`);
  return {
    readRegistrationSecret: (identity) =>
      guard('read the registration of', podName(identity), () =>
        readJson<Registration>(registrationFile(identity)),
      ),

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
  };
}

/** Calls about one pod. */
function podCalls(
  folders: StateDirectories,
  observe: ObservePods,
  { command, anyCommand = false }: ProcessComputeOptions,
): Pick<Compute, 'validate' | 'createPod' | 'getPod' | 'deletePod'> {
  return {
    validate: (request) => processErrors(request, command, anyCommand),

    createPod: (request, registration) =>
      guard('start', podName(request.identity), async () => {
        // Checked again here, because anyone who can write to the Temporal namespace can bypass the
        // admission.
        const [fault] = processErrors(request, command, anyCommand);
        if (fault !== undefined) throw new ComputeError('invalid', fault);
        return toPodView(
          await startPod(folders, observe, request, runnerCommand(request, command), registration),
        );
      }),

    getPod: (pod) =>
      guard('read', pod.name, async () => {
        requirePodName(pod.name);
        const found = (await observe([pod.name])).get(pod.name);
        return found !== undefined && isPodOf(found.spec, pod) ? toPodView(found) : undefined;
      }),

    deletePod: (pod, how = {}) =>
      guard('delete', pod.name, async () =>
        (await isOwnPod(folders, pod)) ? await deletePod(folders, observe, pod, how) : 'deleted',
      ),
  };
}

/** Calls about claims and the machine. */
function claimCalls(
  folders: StateDirectories,
): Pick<Compute, 'deleteClaims' | 'fenceClaims' | 'claimWriters' | 'releaseClaims' | 'nodeState'> {
  return {
    deleteClaims: (identity, claims) =>
      guard('delete the claims of', podName(identity), () =>
        removeClaimFolders(folders, identity, claims),
      ),

    // There is only one machine: a process that has ended cannot write any more, and no node can be
    // unreachable.
    fenceClaims: () => Promise.resolve(),
    claimWriters: () => Promise.resolve([]),
    releaseClaims: () => Promise.resolve(),
    nodeState: () => Promise.resolve('ready'),
  };
}

/** Calls about the output of runners. */
function logCalls(folders: StateDirectories): Pick<Compute, 'tailLog' | 'streamLog'> {
  return {
    tailLog: (pod, maxBytes) =>
      guard('read the log of', pod.name, async () =>
        (await isOwnPod(folders, pod))
          ? await logTail(join(folders.pods, pod.name, POD_FILE.output), maxBytes)
          : undefined,
      ),

    streamLog: (pod, how) =>
      guard('read the log of', pod.name, async () =>
        (await isOwnPod(folders, pod))
          ? await logStream(join(folders.pods, pod.name, POD_FILE.output), how, async () => {
              const now = await readPod(folders, pod.name);
              return now?.spec.uid !== pod.uid || now.exit !== undefined;
            })
          : undefined,
      ),
  };
}

/** Calls about all pods. */
function podLists(
  folders: StateDirectories,
  observe: ObservePods,
  { rescanMs = 2_000, logger }: ProcessComputeOptions,
): Pick<Compute, 'list' | 'watch'> {
  return {
    list: () =>
      guard('list', folders.pods, async () => {
        await makeStateFolders(folders);
        return [...(await observe(await readdir(folders.pods))).values()].map(toPodView);
      }),

    watch: (listener) =>
      guard('watch', folders.pods, async () => {
        await makeStateFolders(folders);
        await emptyTrash(folders);
        const failed = (error: unknown, what: string): void =>
          logger?.warn(
            { err: error, what },
            'failed step in the watch of runner processes; the watch continues',
          );
        const watch = new PodFolderWatch({ folders, listener, observe, rescanMs, failed });
        await watch.start();
        return watch;
      }),
  };
}

/** Maps errors of the operating system to errors of the port. */
async function guard<T>(what: string, name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ComputeError) throw error;
    const message = `cannot ${what} ${name}: ${errorMessage(error)}`;
    throw new ComputeError(
      hasCode(error, 'EACCES', 'EPERM', 'EROFS') ? 'forbidden' : 'unavailable',
      message,
      { cause: error },
    );
  }
}
