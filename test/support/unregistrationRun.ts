import type { RunnerInput } from '../../core/contract/index.ts';
import type { FakeCiServer } from './fakeCiServer.ts';
import type { FakeCompute } from './fakeCompute.ts';
import type { HoldfastWorld, RunnerRun } from './holdfastWorld.ts';
import { memoryWorld } from './memoryWorld.ts';

/** A runner that will be unregistered, with a compute and a CI server in memory. */
export class UnregistrationRun {
  readonly compute: FakeCompute;
  readonly ci: FakeCiServer;
  readonly world: HoldfastWorld;
  /** The runner, once {@link idle} or {@link busy} has started it. */
  run!: RunnerRun;
  pod = '';
  runnerName = '';

  private constructor({ compute, ci, world }: Awaited<ReturnType<typeof memoryWorld>>) {
    this.compute = compute;
    this.ci = ci;
    this.world = world;
  }

  static async open(lab: Parameters<typeof memoryWorld>[0]): Promise<UnregistrationRun> {
    return new UnregistrationRun(await memoryWorld(lab));
  }

  async close(): Promise<void> {
    await this.world.close();
  }

  /** Starts a runner and brings it online. */
  async idle(input: Partial<RunnerInput> = {}): Promise<void> {
    this.run = await this.world.start(input);
    this.pod = await this.run.pod();
    this.compute.start(this.pod);
    ({ runnerName: this.runnerName } = await this.run.status());
    this.ci.connect(this.runnerName);
    await this.run.reaches('Idle', (status) => status.phase === 'Idle');
  }

  /** Starts a runner and assigns a job to it. */
  async busy(input: Partial<RunnerInput> = {}): Promise<void> {
    await this.idle(input);
    this.ci.setBusy(this.runnerName, true);
    this.compute.startJob(this.pod);
    if (this.compute.probes) await this.run.reaches('Busy', (status) => status.phase === 'Busy');
  }

  async drain(): Promise<void> {
    await this.run.handle.executeUpdate('drain', { args: [] });
  }

  /** Ends the job of an ephemeral runner, which ends with it. */
  finishJob(): void {
    this.ci.forget(this.runnerName);
    this.compute.endJob(this.pod);
    this.compute.end(this.pod, 0);
  }

  /** Returns the number of requests to remove the registration. */
  removals(): number {
    return this.ci.count('remove');
  }

  /** Returns whether the workflow has cancelled one of its activities. */
  async hasCancelledActivity(): Promise<boolean> {
    return ((await this.run.handle.fetchHistory()).events ?? []).some(
      ({ activityTaskCancelRequestedEventAttributes: request }) =>
        request !== null && request !== undefined,
    );
  }
}
