/** Whoever may start a workflow wants more time than the worker's cap allows: an attempt after the other, each with the whole of it. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { FakeCiServer } from '../support/fakeCiServer.ts';
import { FakeCompute } from '../support/fakeCompute.ts';
import { holdfastWorld, type HoldfastWorld, type RunnerRun } from '../support/holdfastWorld.ts';
import { describeWithLab } from '../support/lab.ts';
import { until } from '../support/until.ts';

const CAP_MS = 3_000;

await describeWithLab('a command that is lost again and again', { temporal: true }, (lab) => {
  let compute: FakeCompute;
  let world: HoldfastWorld;
  beforeAll(async () => {
    compute = new FakeCompute();
    world = await holdfastWorld(lab.temporal?.address ?? '', {
      compute,
      ciServers: new FakeCiServer(),
      timeoutPolicy: { default: { jobTimeoutCap: `${CAP_MS}ms` } },
    });
  });
  afterAll(async () => await world.close());

  /** The pod of an attempt, at work. */
  async function working(run: RunnerRun, attempt: number): Promise<string> {
    const { pod = '' } = await run.reaches(
      `attempt ${attempt}`,
      (status) => status.attempt === attempt && status.pod !== undefined,
    );
    compute.start(pod);
    await run.reaches('Busy', ({ phase }) => phase === 'Busy');
    return pod;
  }

  test('has the cap once, for all attempts together', async () => {
    const run = await world.start({
      ciServer: 'none',
      command: ['mine'],
      onEviction: 'replace',
      timeouts: { jobTimeout: `${CAP_MS}ms` },
    });
    const first = await working(run, 1);
    compute.vanish(first);
    const second = await working(run, 2);
    const [before, after] = compute.created.map(({ supervision }) => supervision?.timeoutMs ?? 0);
    expect(before).toBe(CAP_MS);
    expect(after).toBeLessThan(CAP_MS);
    const startedAt = Date.now();
    await until('the rest to be used up', () => Date.now() - startedAt > CAP_MS);
    compute.vanish(second);
    expect(await run.result()).toMatchObject({
      outcome: 'aborted',
      cause: 'run_timeout',
      attempt: 2,
    });
  });
});
