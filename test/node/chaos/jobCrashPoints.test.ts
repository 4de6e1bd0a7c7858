import { expect } from '@jest/globals';
import type { JobInput, JobResult } from '../../../core/contract/index.ts';
import { ClusterJob } from '../../support/clusterJob.ts';
import { states } from '../../support/jobRun.ts';
import { describeWithLab } from '../../support/lab.ts';
import { inContainer } from '../../support/podLog.ts';
import { TICK } from '../../support/stoppedChildren.ts';
import { together, type Scenario } from '../../support/together.ts';
import { CrashWorld } from './crashWorld.ts';
import { partaking } from './partaking.ts';
import type { ProxiedRequest } from './withholdingProxy.ts';

type Matcher = (request: ProxiedRequest) => boolean;

/** The pod of a step is named from its workflow: `test-1`. */
const creation =
  (job: string, step: string): Matcher =>
  ({ method, path, body }) =>
    method === 'POST' &&
    /\/pods(\?|$)/.test(path) &&
    new RegExp(`"job-${job}-[0-9a-f]{6}-${step}-`).test(body);
const deletion =
  (job: string, step: string): Matcher =>
  ({ method, path }) =>
    method === 'DELETE' && new RegExp(`/pods/job-${job}-[0-9a-f]{6}-${step}-`).test(path);

const image = 'holdfast.test/busybox:1';
const done = (name: string, code = 0) => ({ name, image, commands: `exit ${code}` });
/** Ends when it is let go. */
const held = (name: string, code = 0) => ({
  name,
  image,
  commands: `trap 'echo told; exit 1' TERM; echo up; until [ -e /tmp/go ]; do sleep 0.05; done; exit ${code}`,
});
const letGo = async ({ world }: CrashWorld, job: ClusterJob, name: string): Promise<void> =>
  void (await inContainer(world.namespace, await job.pod(name), 'touch /tmp/go'));

/** The steps as told, each with one pod, in that order. */
async function endsWith(
  job: ClusterJob,
  pods: readonly string[],
  expected: readonly string[],
): Promise<JobResult> {
  const result = await job.result();
  expect(states(result)).toEqual(expected);
  expect(job.pods()).toEqual(pods);
  return result;
}

/** All stages; `at` is held until all others are at their points, too. */
async function start(crash: CrashWorld, name: string, at?: keyof typeof HELD): Promise<ClusterJob> {
  const job = await ClusterJob.start(crash.world, name, {
    ...ALL,
    ...(at === undefined ? {} : HELD[at]),
  });
  if (at !== undefined) await job.up(STEP[at]);
  return job;
}

const ALL: Omit<JobInput, 'name'> = {
  pre: [done('rent')],
  test: [done('unit', 3)],
  post: [done('gather'), done('give-back')],
};
const HELD = {
  pre: { pre: [held('rent')] },
  test: { test: [held('unit', 3)] },
  post: { post: [held('gather'), done('give-back')] },
};
const STEP = { pre: 'rent', test: 'unit', post: 'gather' } as const;
const EACH_ONCE = [
  ['pre-1', 'test-1', 'post-1', 'post-2'],
  ['rent succeeded', 'unit failed', 'gather succeeded', 'give-back succeeded'],
] as const;

const lives: Record<string, Scenario<CrashWorld>> = {
  'pod of pre made': async (crash) => {
    await crash.ready();
    const point = crash.kubernetes.withhold(creation('pre-made', 'pre-1'));
    const job = await start(crash, 'pre-made');
    await crash.crashesAt(point, 201);
    await endsWith(job, ...EACH_ONCE);
  },

  'pod of test made': async (crash) => {
    const job = await start(crash, 'test-made', 'pre');
    await crash.ready();
    const point = crash.kubernetes.withhold(creation('test-made', 'test-1'));
    await letGo(crash, job, 'rent');
    await crash.crashesAt(point, 201);
    await endsWith(job, ...EACH_ONCE);
  },

  'pod of post made': async (crash) => {
    const job = await start(crash, 'post-made', 'test');
    await crash.ready();
    const point = crash.kubernetes.withhold(creation('post-made', 'post-1'));
    await letGo(crash, job, 'unit');
    await crash.crashesAt(point, 201);
    await endsWith(job, ...EACH_ONCE);
  },

  'second pod of post made': async (crash) => {
    const job = await start(crash, 'next-made', 'post');
    await crash.ready();
    const point = crash.kubernetes.withhold(creation('next-made', 'post-2'));
    await letGo(crash, job, 'gather');
    await crash.crashesAt(point, 201);
    await endsWith(job, ...EACH_ONCE);
  },

  'pod of test deleted after it failed': async (crash) => {
    const job = await start(crash, 'test-gone', 'test');
    await crash.ready();
    const point = crash.kubernetes.withhold(deletion('test-gone', 'test-1'));
    await letGo(crash, job, 'unit');
    await crash.crashesAt(point, 200);
    await endsWith(job, ...EACH_ONCE);
  },

  'pod of post deleted after its end': async (crash) => {
    const job = await start(crash, 'post-gone', 'post');
    await crash.ready();
    const point = crash.kubernetes.withhold(deletion('post-gone', 'post-1'));
    await letGo(crash, job, 'gather');
    await crash.crashesAt(point, 200);
    await endsWith(job, ...EACH_ONCE);
  },

  'stop of test asked for: told once, within its grace; then post': async (crash) => {
    const job = await ClusterJob.start(crash.world, 'stopped', {
      ...ALL,
      test: [
        {
          name: 'unit',
          image,
          commands: `trap 'echo told; sleep 3; echo "cleaned up"; exit 1' TERM; echo up; ${TICK}`,
        },
      ],
    });
    const log = await job.up('unit');
    await crash.ready();
    const point = crash.kubernetes.withhold(deletion('stopped', 'test-1'));
    await job.handle.signal('cancel', 'enough');
    await crash.crashesAt(point, 200);
    const result = await endsWith(job, EACH_ONCE[0], [
      'rent succeeded',
      'unit aborted cancelled',
      'gather succeeded',
      'give-back succeeded',
    ]);
    expect(result).toMatchObject({ outcome: 'aborted', cause: 'cancelled' });
    const said = (await log.complete()).text
      .split('\n')
      .filter((line) => line === 'told' || line === 'cleaned up');
    expect(said).toEqual(['told', 'cleaned up']);
  },
};

await describeWithLab(
  'worker killed between a side effect of a job and its completion',
  { temporal: true, nodes: 'kubelet' },
  (lab) => {
    together(async () => await CrashWorld.open(lab, Object.keys(lives).length), partaking(lives), {
      afterwards: { 'nothing is left': async ({ world }) => await world.expectNothingLeft() },
    });
  },
);
