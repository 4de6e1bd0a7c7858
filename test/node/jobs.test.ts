/** Jobs of several steps in real pods: interrupted in every stage, by authors' own traps, while their worker dies. */
import { expect } from '@jest/globals';
import type { StepInput } from '../../core/contract/index.ts';
import { ClusterJob } from '../support/clusterJob.ts';
import { ClusterWorld } from '../support/clusterWorld.ts';
import { lines, states } from '../support/jobRun.ts';
import { describeWithLab } from '../support/lab.ts';
import { TICK } from '../support/stoppedChildren.ts';
import { together, type Scenario } from '../support/together.ts';

const INTERRUPTED = [
  'Received signal. signal=interrupt',
  'error: Process interrupted with signal interrupt, cancelling execution...',
];
/** What the step was told, once it is. */
const WHY = 'trap \'echo "told: $(cat "$HOLDFAST_STOP_REASON_FILE")"; exit 1\' TERM; echo up;';

const step = (name: string, commands: string, more: Partial<StepInput> = {}): StepInput => ({
  name,
  image: 'holdfast.test/busybox:1',
  commands,
  ...more,
});

const scenarios: Record<string, Scenario<ClusterWorld>> = {
  'its timeout during test: the step is told, and has its grace; then post, in order, which a second cancel does not cut':
    async (world) => {
      const job = await ClusterJob.start(world, 'timeline', {
        timeout: '90s',
        test: [step('unit', `${WHY} ${TICK}`), step('e2e', 'true')],
        post: [
          step('gather', 'echo "after: $JOB_STOP_REASON"; echo up; sleep 30'),
          step('clean', 'true'),
        ],
      });
      const unit = await job.up('unit');
      const gather = await job.up('gather');
      await job.handle.signal('cancel', 'hurry up');
      const result = await job.result();
      await Promise.all([unit.complete(), gather.complete()]);
      expect(unit.text).toContain('told: timeout');
      expect(gather.text).toContain('after: timeout');
      expect(result).toMatchObject({ outcome: 'aborted', cause: 'run_timeout' });
      expect(states(result)).toEqual([
        'unit aborted run_timeout',
        'e2e not_run',
        'gather succeeded',
        'clean succeeded',
      ]);
      expect(lines(result)).toEqual([
        'Running step unit.',
        'Process did not finish before 1m30s timeout',
        ...INTERRUPTED,
        `cleanup: Deleting pod ${result.steps[0]?.pod}`,
        'Running step gather.',
        'Running step clean.',
        'Process gracefully exited before 30m0s grace period',
      ]);
      expect(job.pods()).toEqual(['test-1', 'post-1', 'post-2']);
    },

  'its timeout during test, and its grace during post, which a second cancel does not cut: the step of post is told that its time is over; the rest is not run':
    async (world) => {
      const job = await ClusterJob.start(world, 'grace', {
        timeout: '90s',
        gracePeriod: '90s',
        test: [step('unit', `${WHY} ${TICK}`)],
        post: [step('gather', `${WHY} ${TICK}`), step('clean', 'true')],
      });
      const unit = await job.up('unit');
      const gather = await job.up('gather');
      await job.handle.signal('cancel', 'hurry up');
      const result = await job.result();
      await Promise.all([unit.complete(), gather.complete()]);
      expect(unit.text).toContain('told: timeout');
      expect(gather.text).toContain('told: timeout');
      expect(result).toMatchObject({ outcome: 'aborted', cause: 'run_timeout' });
      expect(states(result)).toEqual([
        'unit aborted run_timeout',
        'gather aborted run_timeout',
        'clean not_run',
      ]);
      expect(lines(result)).toEqual([
        'Running step unit.',
        'Process did not finish before 1m30s timeout',
        ...INTERRUPTED,
        `cleanup: Deleting pod ${result.steps[0]?.pod}`,
        'Running step gather.',
        'Process did not exit before 1m30s grace period',
        `cleanup: Deleting pod ${result.steps[1]?.pod}`,
      ]);
    },

  'a step that ignores SIGTERM is killed at the end of its grace; post runs': async (world) => {
    const job = await ClusterJob.start(world, 'deaf', {
      test: [step('unit', `trap "" TERM; echo up; ${TICK}`, { gracePeriod: '3s' })],
      post: [step('clean', 'true')],
    });
    const unit = await job.up('unit');
    await job.handle.signal('cancel', { stopReason: 'superseded', reason: 'abc123' });
    const result = await job.result();
    await unit.complete();
    expect(unit.errors.map(({ text }) => text)).toContain(
      'Process did not exit before 3s grace period',
    );
    expect(result).toMatchObject({ outcome: 'aborted', cause: 'superseded' });
    expect(states(result)).toEqual(['unit aborted superseded', 'clean succeeded']);
  },

  'as authors write steps: a trap around a loop of scripts to which the shell does not pass the signal on':
    async (world) => {
      const script =
        'cleanup() { echo "cleaned up"; exit 1; }; trap cleanup TERM; echo up; while true; do sh -c "sleep 1"; done';
      const job = await ClusterJob.start(world, 'trap', { test: [step('validate', script)] });
      const log = await job.up('validate');
      await job.handle.signal('cancel', 'enough');
      expect(await job.result()).toMatchObject({ outcome: 'aborted' });
      await log.complete();
      expect(log.text).toContain('cleaned up');
    },

  'as authors write steps: children in the background, to which the trap passes the signal on':
    async (world) => {
      const child = (name: string): string =>
        `sh -c 'trap "echo ${name} stopped cleanly; exit 0" TERM; while true; do sleep 0.2; done' & `;
      const script = `trap 'kill $(jobs -p); wait; echo "all stopped"; exit 1' TERM; ${child('one')}${child('two')}sleep 1; echo up; while true; do wait; done`;
      const job = await ClusterJob.start(world, 'forward', { test: [step('serve', script)] });
      const log = await job.up('serve');
      await job.handle.signal('cancel', 'enough');
      expect(await job.result()).toMatchObject({ outcome: 'aborted' });
      await log.complete();
      for (const words of ['one stopped cleanly', 'two stopped cleanly', 'all stopped'])
        expect(log.text).toContain(words);
    },

  'its worker is killed in test and in post: each step once, in order': async (world) => {
    const job = await ClusterJob.start(world, 'killed', {
      pre: [step('prepare', 'true')],
      test: [step('unit', 'echo up; sleep 30; exit 3')],
      post: [step('gather', 'echo up; sleep 30'), step('clean', 'true')],
    });
    for (const name of ['unit', 'gather']) {
      await job.up(name);
      world.worker.kill('SIGKILL');
      await world.worker.ended;
      await world.startWorker();
    }
    const result = await job.result();
    expect(result).toMatchObject({ outcome: 'failed' });
    expect(states(result)).toEqual([
      'prepare succeeded',
      'unit failed',
      'gather succeeded',
      'clean succeeded',
    ]);
    expect(job.pods()).toEqual(['pre-1', 'test-1', 'post-1', 'post-2']);
  },
};

await describeWithLab(
  'jobs of several steps in real pods',
  { temporal: true, nodes: 'kubelet' },
  (lab) => {
    together(async () => await ClusterWorld.open(lab, { webhook: false }), scenarios, {
      timeoutMs: 600_000,
      afterwards: {
        'nothing is left': async (world) => await world.expectNothingLeft(),
      },
    });
  },
);
