import { randomUUID } from 'node:crypto';
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createProcessCompute } from '../../activities/compute/process/processCompute.ts';
import type { Compute } from '../../activities/ports/compute.ts';
import type { ComputeContractHarness } from './computeContract.ts';
import { recordWatch, type RecordedWatch } from './recordedWatch.ts';
import { untilSeen } from './until.ts';
import type { PodRequest, PodView, RunnerIdentity } from '../../core/domain/pod.ts';

export interface ProcessHarness extends ComputeContractHarness {
  readonly stateDir: string;
  /**
   * Returns the PIDs of the pod's wrapper and, after its start, of its runner, from the pod's
   * files.
   */
  pids(pod: PodView): Promise<{ wrapper: number; runner: number }>;
  /** A watch that ends with the harness, if not before. */
  watch(compute?: Compute): Promise<RecordedWatch>;
  /** Returns the output of the runner. */
  output(pod: PodView): Promise<string>;
}

/** Runs until the file $END holds an exit code; SIGTERM ends it with 143, unless $STAY is set. */
const RUNNER = [
  'sh',
  '-c',
  'trap "echo got TERM; [ -n \\"\\$STAY\\" ] || exit 143" TERM; echo running; while [ ! -s "$END" ]; do sleep 0.02; done; exit "$(cat "$END")"',
];

/** Starts process compute in a state directory of its own. */
export async function startProcessHarness(rescanMs = 200): Promise<ProcessHarness> {
  const root = await mkdtemp(join(tmpdir(), 'holdfast-processes-'));
  const stateDir = join(root, 'state');
  const instance = (): Compute =>
    createProcessCompute({
      stateDir,
      rescanMs,
      anyCommand: true,
      logger: { warn: (fields, message) => warnings.push({ ...fields, message }) },
    });
  const compute = instance();
  const warnings: { message: string; wrapperLog?: string }[] = [];
  const watches: RecordedWatch[] = [];
  const endFile = (name: string): string => join(root, `${name}.end`);
  const podFile = (pod: PodView, file: string): string => join(stateDir, 'pods', pod.name, file);

  async function pids(pod: PodView): Promise<{ wrapper: number; runner: number }> {
    // A runner may print something before its wrapper has recorded its start.
    const content = (file: string): Promise<string> =>
      untilSeen(
        `${file} is there`,
        () => readFile(podFile(pod, file), 'utf8').catch(() => ''),
        (text) => text !== '',
      );
    const owner = JSON.parse(await content('owner.json')) as { wrapper: { pid: number } };
    const started = JSON.parse(await content('started.json')) as { process: { pid: number } };
    return { wrapper: owner.wrapper.pid, runner: started.process.pid };
  }

  return {
    stateDir,
    compute,
    second: instance(),
    pids,
    async watch(watched = compute) {
      const watch = await recordWatch(watched);
      watches.push(watch);
      return watch;
    },
    output: (pod) => readFile(podFile(pod, 'output.log'), 'utf8'),
    newIdentity: (): RunnerIdentity => ({
      workflowId: `runner-${randomUUID()}`,
      firstRunId: randomUUID(),
      attempt: 1,
    }),
    request: (identity, { lingers = false } = {}): PodRequest => ({
      identity,
      command: RUNNER,
      env: { END: endFile(compute.podName(identity)), STAY: lingers ? '1' : '' },
      labels: { 'holdfast.dev/set': 'test' },
      terminationGracePeriodSeconds: 20,
    }),
    async makeRunning(pod) {
      // Its trap must be set, too.
      await untilSeen(
        'the runner is running',
        () => readFile(podFile(pod, 'output.log'), 'utf8').catch(() => ''),
        (text) => text.includes('running'),
      );
      await untilSeen(
        'the runner has started',
        () => compute.getPod(pod),
        (view) => view?.startedAt !== undefined,
      );
    },
    end: (pod, exitCode) => writeFile(endFile(pod.name), `${exitCode}`),
    async vanish(pod) {
      const { wrapper, runner } = await pids(pod);
      process.kill(wrapper, 'SIGKILL');
      process.kill(runner, 'SIGKILL');
    },
    finishTermination: ({ name }) => writeFile(endFile(name), '143'),
    async close() {
      for (const watch of watches) await watch.stop();
      for (const pod of await compute.list())
        await compute.deletePod(pod, { gracePeriodSeconds: 0 });
      await untilSeen(
        'every pod is gone',
        () => compute.list(),
        (pods) => pods.length === 0,
      );
      // The last action of a wrapper is to empty its folder in the trash.
      await untilSeen(
        'the trash is empty',
        () => readdir(join(stateDir, 'trash')).catch(() => []),
        (entries) => entries.length === 0,
      );
      await rm(root, { recursive: true, maxRetries: 5 });
      const complaints = warnings.filter(({ wrapperLog }) => wrapperLog !== '');
      if (complaints.length > 0)
        throw new Error(`a wrapper or a watch has complained: ${JSON.stringify(complaints)}`);
    },
  };
}
