import type { V1ContainerStateTerminated, V1Pod } from '@kubernetes/client-node';
import type { RunnerInput, RunnerResult } from '../../core/contract/index.ts';
import type { ClusterRun } from './clusterRun.ts';
import type { ClusterWorld } from './clusterWorld.ts';
import { markedProcesses } from './markedProcesses.ts';
import { PodLog } from './podLog.ts';
import { until } from './until.ts';

/** The supervisor's record, as the container's termination message carries it. */
export interface EndRecord {
  readonly exitCode: number;
  readonly signal: string | null;
  readonly reason: string | null;
  readonly startedAt: string | null;
  readonly endedAt: string;
}

/** How a container ended, as the kubelet reports it. */
export interface ContainerEnd {
  readonly exitCode: number;
  readonly reason: string | undefined;
  readonly message: string | undefined;
  /** Time of the end, in whole seconds (ms since the epoch). */
  readonly finishedAt: number;
  readonly record?: EndRecord;
}

/** The workflow of a plain command in a {@link ClusterWorld}. */
export class CommandRun {
  readonly run: ClusterRun;
  readonly #mark: string;

  private constructor(run: ClusterRun, mark: string) {
    this.run = run;
    this.#mark = mark;
  }

  /** @param command - arguments, or a script for the shell */
  static async start(
    world: ClusterWorld,
    name: string,
    command: string | readonly string[],
    input: Partial<RunnerInput> = {},
  ): Promise<CommandRun> {
    const mark = `${name}-${Math.random()}`;
    const args = typeof command === 'string' ? ['sh', '-c', command] : [...command];
    const run = await world.start(name, {
      ciServer: 'none',
      image: 'holdfast.test/busybox:1',
      command: args,
      env: { TEST_LIFE: mark },
      ...input,
    });
    return new CommandRun(run, `TEST_LIFE=${mark}`);
  }

  /** The attempt's pod and its log, once its container runs. */
  async running(attempt = 1, container = 'runner'): Promise<{ pod: string; log: PodLog }> {
    const { pod = '' } = await this.run.reaches(
      `attempt ${attempt} in a pod`,
      (status) => status.attempt === attempt && status.pod !== undefined,
    );
    const { namespace } = this.run.world;
    await namespace.waitForPod(
      pod,
      ({ status }) =>
        [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])].some(
          (each) => each.name === container && each.state?.waiting === undefined,
        ),
      120_000,
    );
    return { pod, log: await PodLog.follow(namespace, pod, container) };
  }

  /** Every version of the workflow's pods, oldest first. */
  podVersions(): V1Pod[] {
    const uids = this.run.podsEver();
    return this.run.world.recorder.podVersions
      .map((version) => JSON.parse(version) as V1Pod)
      .filter(({ metadata }) => uids.includes(metadata?.uid ?? ''));
  }

  /** How the container with that name ended in each of the workflow's pods, oldest first. */
  containerEnds(container = 'runner'): ContainerEnd[] {
    const ends = new Map<string, ContainerEnd>();
    for (const { metadata, status } of this.podVersions()) {
      const terminated = [
        ...(status?.containerStatuses ?? []),
        ...(status?.initContainerStatuses ?? []),
      ].find(({ name }) => name === container)?.state?.terminated;
      if (terminated !== undefined) ends.set(metadata?.uid ?? '', containerEnd(terminated));
    }
    return [...ends.values()];
  }

  /** Returns the verdict. By then the cluster and the node have no objects or processes of the workflow. */
  async ends(): Promise<RunnerResult> {
    const result = await this.run.ends();
    await until(
      'no process of it to be left',
      () => this.processes().length === 0,
      () => JSON.stringify(this.processes()),
    );
    return result;
  }

  /** Returns its processes on the node, including init and supervisor. */
  processes(): { pid: number; command: string }[] {
    return markedProcesses(this.#mark);
  }
}

function containerEnd({
  exitCode,
  reason,
  message,
  finishedAt,
}: V1ContainerStateTerminated): ContainerEnd {
  const record = message?.startsWith('{"exitCode"')
    ? { record: JSON.parse(message) as EndRecord }
    : {};
  return { exitCode, reason, message, finishedAt: new Date(finishedAt ?? '').getTime(), ...record };
}
