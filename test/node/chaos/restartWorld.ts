import { down, kill, start, type LabState } from '../../../tools/lab/lab.ts';
import type { RunnerInput } from '../../../core/contract/index.ts';
import { ClusterJob } from '../../support/clusterJob.ts';
import type { ClusterRun } from '../../support/clusterRun.ts';
import { ClusterWorld } from '../../support/clusterWorld.ts';
import { startGates, type Gates } from './gates.ts';
import { Meeting } from './meeting.ts';

/** What one life does at each moment; all lives are at the same moment. */
export interface Moments {
  /** Everybody is up. Temporal will be killed in a moment. */
  beforeTemporalDies?(): Promise<void> | void;
  whileTemporalIsDown?(): Promise<void> | void;
  /** Temporal is back on its data; the API server still runs. */
  between?(): Promise<void> | void;
  whileApiServerIsDown?(): Promise<void> | void;
}

/** A runner at a job that ends when it is told to. */
export interface BusyRun {
  readonly run: ClusterRun;
  readonly job: { readonly id: number };
  /** Lets the job end, and awaits that the CI server knows. */
  readonly finish: () => Promise<void>;
}

/** A world in a lab of its own, whose Temporal and whose API server are killed (SIGKILL) and started again in the middle of all lives. */
export class RestartWorld {
  readonly world: ClusterWorld;
  readonly #gates: Gates;
  readonly #lab: LabState;
  readonly #meetings: Record<
    'up' | 'temporalDies' | 'temporalReturns' | 'apiServerDies' | 'apiServerReturns',
    Meeting
  >;

  private constructor(lab: LabState, world: ClusterWorld, gates: Gates, lives: number) {
    this.#lab = lab;
    this.world = world;
    this.#gates = gates;
    const { stateDir } = lab;
    this.#meetings = {
      up: new Meeting(lives, async () => undefined),
      temporalDies: new Meeting(lives, async () => await kill(stateDir, 'temporal')),
      temporalReturns: new Meeting(lives, async () => await start(stateDir, 'temporal')),
      apiServerDies: new Meeting(lives, async () => await kill(stateDir, 'kube-apiserver')),
      apiServerReturns: new Meeting(lives, async () => await start(stateDir, 'kube-apiserver')),
    };
  }

  static async open(lab: LabState, lives: number): Promise<RestartWorld> {
    return new RestartWorld(
      lab,
      await ClusterWorld.open(lab),
      await startGates(lab.hostAddress ?? '127.0.0.1'),
      lives,
    );
  }

  /** A runner that is at its job. */
  async busy(name: string, input: Partial<RunnerInput> = {}): Promise<BusyRun> {
    const run = await this.world.start(name, input);
    const { job, finish } = this.queueJob(run);
    await run.waitForLine(job, 'begun');
    return { run, job, finish };
  }

  /** Queues a job that ends when it is told to. */
  queueJob(run: ClusterRun): Omit<BusyRun, 'run'> {
    const job = run.queueJob(this.#gates.job(run.key));
    const finish = async (): Promise<void> => {
      this.#gates.open(run.key);
      await run.waitForLine(job, 'finished');
      await this.world.simulator.waitForJob(job.id, 'completed');
    };
    return { job, finish };
  }

  /** A job of several steps that is at its first step of `post`, which ends when it is told to. */
  async jobInPost(name: string): Promise<{ job: ClusterJob; pod: string; finish: () => void }> {
    const step = (called: string, commands: string) => ({
      name: called,
      image: 'holdfast.test/busybox:1',
      commands,
    });
    const job = await ClusterJob.start(this.world, name, {
      test: [step('unit', 'exit 3')],
      post: [step('gather', this.#gates.job(name)), step('clean', 'true')],
    });
    // Its log is not read: a stream of it ends with the API server.
    const pod = await job.started('gather');
    return { job, pod, finish: () => this.#gates.open(name) };
  }

  /** Goes through both restarts with all other lives, doing this at each moment. */
  async goThrough(moments: Moments): Promise<void> {
    await this.#meetings.up.arrive();
    await moments.beforeTemporalDies?.();
    await this.#meetings.temporalDies.arrive();
    await moments.whileTemporalIsDown?.();
    await this.#meetings.temporalReturns.arrive();
    await moments.between?.();
    await this.#meetings.apiServerDies.arrive();
    await moments.whileApiServerIsDown?.();
    await this.#meetings.apiServerReturns.arrive();
  }

  /** Somebody will not come to the meetings. */
  callOff(cause: unknown): void {
    for (const meeting of Object.values(this.#meetings)) meeting.callOff(cause);
  }

  /** Takes its lab down, too, unless HOLDFAST_LAB_KEEP=1. */
  async close(): Promise<void> {
    const { stateDir } = this.#lab;
    for (const component of ['temporal', 'kube-apiserver'] as const)
      await start(stateDir, component); // a failed test may have left one down
    await this.world.close();
    await this.#gates.close();
    if (process.env['HOLDFAST_LAB_KEEP'] !== '1') await down({ stateDir, purge: true });
  }
}
