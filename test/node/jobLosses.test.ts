/** Steps whose pods do not come up, are taken away, or are in the way of a newer version: on a real kubelet. */
import { randomBytes, randomUUID } from 'node:crypto';
import type { V1Pod } from '@kubernetes/client-node';
import { expect } from '@jest/globals';
import { WORKFLOW_ID_ANNOTATION } from '../../activities/compute/kubernetes/metadata.ts';
import {
  JOB_GROUP_WORKFLOW,
  groupedJobId,
  jobGroupStatusQuery,
  jobRevisionSignal,
  type JobGroupStatus,
  type StepInput,
} from '../../core/contract/index.ts';
import { jobGroupId } from '../../core/domain/changeSet.ts';
import { ClusterJob } from '../support/clusterJob.ts';
import { ClusterWorld } from '../support/clusterWorld.ts';
import { lines, states } from '../support/jobRun.ts';
import { describeWithLab } from '../support/lab.ts';
import { TICK } from '../support/stoppedChildren.ts';
import { together, type Scenario } from '../support/together.ts';
import { until } from '../support/until.ts';

/** Where steps have little time to come up; those of `post` need some of it. */
const HASTY = 'hasty/web';
const TIMEOUTS = { scopes: { [HASTY]: { podUnscheduled: '30s', podPending: '90s' } } };

const step = (name: string, commands: string, more: Partial<StepInput> = {}): StepInput => ({
  name,
  image: 'holdfast.test/busybox:1',
  commands,
  ...more,
});
/** Says what it is told when it is. */
const WORK = `trap 'echo "told: $(cat "$HOLDFAST_STOP_REASON_FILE")"; exit 1' TERM; echo up; ${TICK}`;
/** No node has as much. */
const TOO_MUCH = { resources: { requests: { cpu: 1_000 } } };
/** Waits for what is not there yet. */
const config = (name: string) => ({
  volumes: [{ name: 'config', mountPath: '/config', configMap: { name } }],
});

const scenarios: Record<string, Scenario<ClusterWorld>> = {
  'no node for a step: infrastructure, no failure; post runs, best effort and all': async (
    world,
  ) => {
    const job = await ClusterJob.start(world, 'unscheduled', {
      repository: HASTY,
      test: [step('unit', 'true', TOO_MUCH), step('e2e', 'true')],
      post: [
        step('gather', 'exit 3', {
          bestEffort: true,
          skipOnSuccess: true,
        } as Partial<StepInput>),
        step('clean', 'true'),
      ],
    });
    const result = await job.result();
    expect(result).toMatchObject({ outcome: 'errored', cause: 'unschedulable' });
    expect(states(result)).toEqual([
      'unit errored unschedulable',
      'e2e not_run',
      'gather failed',
      'clean succeeded',
    ]);
    expect(result.message).toBe('Not every step succeeded: test unit errored/unschedulable.');
  },

  'a step whose container does not start: infrastructure, no failure; post runs': async (world) => {
    const job = await ClusterJob.start(world, 'pending', {
      repository: HASTY,
      test: [step('unit', 'true', config('never'))],
      post: [step('clean', 'true')],
    });
    const result = await job.result();
    expect(result).toMatchObject({ outcome: 'errored', cause: 'pending_timeout' });
    expect(states(result)).toEqual(['unit errored pending_timeout', 'clean succeeded']);
  },

  'a best-effort step of post fails, and one is skipped: succeeded': async (world) => {
    const optional = { skipOnSuccess: true } as Partial<StepInput>;
    const job = await ClusterJob.start(world, 'best-effort', {
      test: [step('unit', 'true')],
      post: [
        step('gather', 'true', optional),
        step('tell', 'exit 3', { bestEffort: true } as Partial<StepInput>),
        step('clean', 'true', optional),
      ],
    });
    const result = await job.result();
    expect(result).toMatchObject({ outcome: 'succeeded' });
    expect(states(result)).toEqual([
      'unit succeeded',
      'gather skipped',
      'tell failed',
      'clean succeeded',
    ]);
    expect(job.pods()).toEqual(['test-1', 'post-2', 'post-3']);
  },

  'cancelled in pre while the step waits for a node: it goes without having run; post runs': async (
    world,
  ) => {
    const job = await ClusterJob.start(world, 'waits', {
      pre: [step('rent', 'true', TOO_MUCH)],
      test: [step('unit', 'true')],
      post: [step('clean', 'echo up; sleep 1; test "$JOB_STOP_REASON" = cancelled')],
    });
    const pod = await job.pod('rent');
    await job.handle.signal('cancel', 'enough');
    const result = await job.result();
    expect(result).toMatchObject({ outcome: 'aborted', cause: 'cancelled' });
    expect(states(result)).toEqual(['rent aborted cancelled', 'unit not_run', 'clean succeeded']);
    expect(lines(result)).toContain(`cleanup: Deleting pod ${pod}`);
    expect(job.pods()).toEqual(['pre-1', 'post-1']);
  },

  'evicted before its command started: another pod takes its place': async (world) => {
    const job = await ClusterJob.start(world, 'early', {
      test: [step('unit', 'cat /config/word', config('late'))],
    });
    const first = await job.pod('unit');
    await world.namespace.waitForPod(first, ({ spec }) => spec?.nodeName !== undefined);
    await job.evict(first);
    await job.pod('unit', first);
    await world.namespace.core.createNamespacedConfigMap({
      namespace: world.namespace.name,
      body: { metadata: { name: 'late' }, data: { word: 'up' } },
    });
    const result = await job.result();
    expect(states(result)).toEqual(['unit succeeded']);
    expect(job.pods()).toEqual(['test-1', 'test-1']);
  },

  'evicted at work: it is told, and has its grace; infrastructure, no failure; post runs': async (
    world,
  ) => {
    const job = await ClusterJob.start(world, 'evicted', {
      test: [step('unit', WORK)],
      post: [step('clean', 'test -z "$JOB_STOP_REASON"')],
    });
    const log = await job.up('unit');
    await job.evict(await job.pod('unit'));
    const result = await job.result();
    expect((await log.complete()).text).toContain('told: cancelled');
    expect(result).toMatchObject({ outcome: 'errored', cause: 'evicted' });
    expect(states(result)).toEqual(['unit errored evicted', 'clean succeeded']);
  },

  'evicted at work, with onEviction: replace: another pod does it': async (world) => {
    const job = await ClusterJob.start(world, 'replaced', {
      test: [
        step('unit', `[ "$HOLDFAST_ATTEMPT" = 1 ] || exit 0; ${WORK}`, { onEviction: 'replace' }),
      ],
    });
    await job.up('unit');
    await job.evict(await job.pod('unit'));
    expect(states(await job.result())).toEqual(['unit succeeded']);
    expect(job.pods()).toEqual(['test-1', 'test-1']);
  },

  'a newer version: the older is told so, has its post, and is gone with all its pods before the newer begins, whose status stays':
    async (world) => {
      const id = jobGroupId({
        job: `unit-${randomUUID().slice(0, 6)}`,
        repository: 'acme/web',
        base: 'main',
        pullRequest: 7,
      });
      const [a, b] = [randomBytes(20).toString('hex'), randomBytes(20).toString('hex')] as [
        string,
        string,
      ];
      const come = async (commit: string, commands: string) => {
        const version = {
          commit,
          at: new Date().toISOString(),
          job: {
            name: 'unit',
            repository: 'acme/web',
            test: [step('unit', commands)],
            post: [
              step(
                'clean',
                'sleep 1; test -z "$JOB_STOP_REASON" -o "$JOB_STOP_REASON" = superseded',
              ),
            ],
          },
        };
        return await world.client.workflow.signalWithStart(JOB_GROUP_WORKFLOW, {
          workflowId: id,
          taskQueue: world.taskQueue,
          args: [],
          signal: jobRevisionSignal,
          signalArgs: [version],
        });
      };
      const group = await come(a, WORK);
      const older = ClusterJob.of(world, groupedJobId(id, 1));
      await until(
        'the older run',
        async () =>
          (await group.query<JobGroupStatus, []>(jobGroupStatusQuery.name)).running !== undefined,
        undefined,
        60_000,
      );
      const log = await older.up('unit');
      await come(b, 'true');
      const result = await older.result();
      expect((await log.complete()).text).toContain('told: superseded');
      expect(result).toMatchObject({ outcome: 'aborted', cause: 'superseded' });
      expect(states(result)).toEqual(['unit aborted superseded', 'clean succeeded']);
      await until(
        'the newer run to be over',
        async () =>
          (await group.query<JobGroupStatus, []>(jobGroupStatusQuery.name)).outcome === 'succeeded',
        undefined,
        120_000,
      );
      // What the watch told last of a pod is its deletion.
      const told = world.recorder.podVersions.map(
        (version) =>
          (JSON.parse(version) as V1Pod).metadata?.annotations?.[WORKFLOW_ID_ANNOTATION] ?? '',
      );
      expect(
        told.findLastIndex((workflowId) => workflowId.startsWith(`${older.id}-`)),
      ).toBeLessThan(
        told.findIndex((workflowId) => workflowId.startsWith(`${groupedJobId(id, 2)}-`)),
      );
      await group.terminate('the test is over');
    },
};

await describeWithLab('lost steps of jobs', { temporal: true, nodes: 'kubelet' }, (lab) => {
  together(
    async () =>
      await ClusterWorld.open(lab, {
        webhook: false,
        settings: { HOLDFAST_TIMEOUTS: JSON.stringify(TIMEOUTS) },
      }),
    scenarios,
    {
      afterwards: {
        'nothing is left': async (world) => await world.expectNothingLeft(),
      },
    },
  );
});
