/** Reads the logs of runners' pods directly from the cluster, without a worker. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { podName } from '../../activities/compute/naming.ts';
import { hasCode } from '../../activities/compute/process/atomicFile.ts';
import { defaultStateDir } from '../../activities/compute/process/podDirectory.ts';
import type { Compute } from '../../activities/ports/compute.ts';
import { errorMessage } from '../../core/domain/errorMessage.ts';
import { LineSplitter } from '../../core/domain/lineSplitter.ts';
import { parseLocation, type Location } from '../../core/domain/location.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { PodView } from '../../core/domain/pod.ts';
import { nonEmptySettings } from '../../worker/settings/config.ts';
import { settings } from '../../worker/settings/settings.ts';
import { CliError } from '../shared/exit.ts';
import { sleep } from '../shared/followRunner.ts';

type Env = Readonly<Record<string, string | undefined>>;

/** Runner whose logs are read. */
export interface LogSubject {
  readonly workflowId: string;
  readonly firstRunId: string;
  /** Search attribute `RunnerLocation`. */
  readonly place: string;
}

/** Settings for the access to a location from this machine. No credential is needed. */
const parts = settings.pick({
  HOLDFAST_KUBECONFIG: true,
  HOLDFAST_KUBE_CONTEXT: true,
  HOLDFAST_STATE_DIR: true,
  HOLDFAST_POD_LOGS: true,
});

/**
 * Time for which a pod is searched at short intervals (ms), because a short command ends soon after
 * its start.
 */
const QUICK_MS = 5_000;
const QUICK_POLL_MS = 50;
const POLL_MS = 1_000;

/** Logs of the pods of one runner. Close it at the end. */
export class RunnerPodLogs {
  readonly #subject: LogSubject;
  readonly #location: Location;
  readonly #compute: Compute;
  readonly #kept: string | undefined;
  readonly #close: () => Promise<void>;

  private constructor(
    subject: LogSubject,
    location: Location,
    compute: Compute,
    kept: string | undefined,
    close: () => Promise<void>,
  ) {
    this.#subject = subject;
    this.#location = location;
    this.#compute = compute;
    this.#kept = kept;
    this.#close = close;
  }

  /**
   * Opens the compute of the runner's location. Compute, installation and namespace are those of
   * the runner; only the access comes from the settings.
   * @throws CliError `usage` if the settings are invalid or no cluster is configured
   */
  static async open(env: Env, subject: LogSubject): Promise<RunnerPodLogs> {
    const set = nonEmptySettings(env);
    const read = parts.safeParse(set);
    if (!read.success)
      throw new CliError('usage', 'invalid settings', {
        fields: read.error.issues.map(({ path, message }) => ({
          field: `${path.join('.')}:`,
          message,
        })),
      });
    const location = parseLocation(subject.place);
    if (location === undefined)
      throw new CliError('failed', `${subject.workflowId}: unknown location "${subject.place}"`);
    const { HOLDFAST_POD_LOGS: podLogs } = read.data;
    const kept = podLogs.startsWith('/') ? podLogs : undefined;
    const { compute, close } = await openCompute(read.data, set, location);
    return new RunnerPodLogs(subject, location, compute, kept, close);
  }

  /** Returns the name of the pod of an attempt. */
  podName(attempt: number): string {
    return podName({ ...this.#subject, attempt });
  }

  /**
   * Reads the pod of an attempt.
   * @returns `undefined` if it does not exist
   * @throws ComputeError
   */
  async readPod(attempt: number): Promise<PodView | undefined> {
    return await this.#find(attempt);
  }

  /**
   * Prints the log of an attempt's pod.
   * @returns whether there was a log
   * @throws ComputeError
   */
  async print(
    attempt: number,
    write: (line: string) => void,
    how: { readonly tailLines?: number; readonly signal: AbortSignal },
  ): Promise<boolean> {
    const pod = await this.#find(attempt);
    return pod !== undefined && (await this.#copy(pod, write, how));
  }

  /**
   * Prints the logs of this attempt's pod and of the pods that replace it, as they are written.
   * @param ended - aborted when the runner has ended: no further pod is waited for
   * @returns whether there was a log
   * @throws ComputeError
   */
  async follow(
    first: number,
    write: (line: string) => void,
    how: { readonly tailLines?: number; readonly signal: AbortSignal; readonly ended: AbortSignal },
  ): Promise<boolean> {
    const { ended, ...rest } = how;
    let attempt = first;
    let printed = false;
    let since = performance.now();
    for (;;) {
      // An attempt may start and end between two checks.
      for (const each of [attempt, attempt + 1]) {
        const pod = await this.#find(each);
        if (pod?.startedAt === undefined) continue;
        if (!(await this.#copy(pod, write, { ...rest, follow: true }))) break;
        printed = true;
        attempt = each + 1;
        since = performance.now();
        break;
      }
      if (ended.aborted || how.signal.aborted) return printed;
      await sleep(performance.now() - since < QUICK_MS ? QUICK_POLL_MS : POLL_MS, ended);
    }
  }

  /**
   * Returns the last log lines of an attempt that a worker has stored in the folder of
   * HOLDFAST_POD_LOGS.
   * @returns `undefined` if there is no such folder or file on this machine
   * @throws CliError if the file cannot be read
   */
  async readKept(attempt: number): Promise<string | undefined> {
    if (this.#kept === undefined) return undefined;
    const file = join(this.#kept, `${this.podName(attempt)}.log`);
    try {
      return await readFile(file, 'utf8');
    } catch (error) {
      if (hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined;
      throw new CliError('failed', `failed to read ${file}: ${errorMessage(error)}`, {
        cause: error,
      });
    }
  }

  async close(): Promise<void> {
    await this.#close();
  }

  async #find(attempt: number): Promise<PodView | undefined> {
    return await this.#compute.getPod({
      name: this.podName(attempt),
      workflowId: this.#subject.workflowId,
      live: true,
      ...omitUndefined({ namespace: this.#location.namespace }),
    });
  }

  async #copy(
    pod: PodView,
    write: (line: string) => void,
    how: { readonly follow?: boolean; readonly tailLines?: number; readonly signal: AbortSignal },
  ): Promise<boolean> {
    const log = await this.#compute.streamLog(pod, how);
    if (log === undefined) return false;
    for await (const line of linesOf(log)) write(line);
    return true;
  }
}

async function openCompute(
  read: ReturnType<typeof parts.parse>,
  env: Env,
  { compute, installation, namespace }: Location,
): Promise<{ compute: Compute; close: () => Promise<void> }> {
  if (compute === 'process') {
    const { createProcessCompute } =
      await import('../../activities/compute/process/processCompute.ts');
    const stateDir = read.HOLDFAST_STATE_DIR ?? defaultStateDir(env);
    return {
      compute: createProcessCompute({ stateDir, installation }),
      close: async () => undefined,
    };
  }
  // Import on demand: loading the Kubernetes client takes most of a second.
  const [{ createKubernetesCompute }, { loadKubeConfig, KubeConfigError }] = await Promise.all([
    import('../../activities/compute/kubernetes/kubernetesCompute.ts'),
    import('../../activities/compute/kubernetes/kubeConfig.ts'),
  ]);
  try {
    const kubernetes = createKubernetesCompute({
      kubeConfig: loadKubeConfig(
        omitUndefined({ path: read.HOLDFAST_KUBECONFIG, context: read.HOLDFAST_KUBE_CONTEXT }),
      ),
      ...omitUndefined({ namespace }),
      installation,
      logger: { info: () => undefined, warn: () => undefined },
    });
    return { compute: kubernetes, close: async () => await kubernetes.close() };
  } catch (error) {
    if (!(error instanceof KubeConfigError)) throw error;
    throw new CliError('usage', `HOLDFAST_KUBECONFIG, HOLDFAST_KUBE_CONTEXT: ${error.message}`, {
      cause: error,
    });
  }
}

/** Splits a log into lines. The last one may have no newline. */
export async function* linesOf(log: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const splitter = new LineSplitter();
  for await (const chunk of log) yield* splitter.push(chunk);
  const rest = splitter.end();
  if (rest !== '') yield rest;
}
