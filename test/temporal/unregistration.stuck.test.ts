/** Rows of the unregistration table, on the real Temporal server: lost answers, refusals, and runners that are stuck. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { CiServerError } from '../../activities/ports/ciServerError.ts';
import { DEREGISTRATION_WORKFLOW } from '../../core/contract/index.ts';
import { busy } from '../support/fakeCiServer.ts';
import { describeWithLab } from '../support/lab.ts';
import { UnregistrationRun } from '../support/unregistrationRun.ts';
import { until } from '../support/until.ts';

await describeWithLab(
  'unregistration that does not succeed immediately',
  { temporal: true },
  (lab) => {
    let life: UnregistrationRun;

    beforeEach(async () => {
      life = await UnregistrationRun.open(lab);
    });
    afterEach(async () => await life.close());

    test('row 5: a force after a stop does not wait for a response that the stop still waits for', async () => {
      await life.busy();
      const { promise, resolve } = Promise.withResolvers<void>();
      life.ci.removalHeld = promise;
      await life.run.handle.signal('cancel');
      await until('the removal', () => life.removals() === 1);
      await life.run.handle.signal('cancel', { mode: 'force' });
      await until('the kill', () => life.compute.deletions.length === 1);
      expect(life.compute.deletions[0]).toMatchObject({ gracePeriodSeconds: 1 });
      resolve();
      life.ci.setBusy(life.runnerName, false);
      expect((await life.run.result()).outcome).toBe('aborted');
    });

    test('row 5: a stop does not wait endlessly for a CI server that does not respond', async () => {
      await life.busy({ intervals: { stopResponseTimeout: '300ms' } });
      life.ci.script.push({
        method: 'remove',
        answer: new CiServerError('rate_limited', 'wait', { retryAfterMs: 3_600_000 }),
      });
      await life.run.handle.signal('cancel');
      await until('the stop', () => life.compute.deletions.length === 1);
      expect(life.compute.deletions[0]).toMatchObject({ gracePeriodSeconds: undefined });
      life.ci.setBusy(life.runnerName, false);
      expect((await life.run.result()).outcome).toBe('aborted');
    });

    test('row 7: a busy static runner is retried endlessly, in one activity', async () => {
      await life.busy({ ephemeral: false });
      life.ci.script.push(
        ...Array.from({ length: 5 }, () => ({ method: 'remove' as const, answer: busy() })),
      );
      await life.drain();
      await until('five refusals', () => life.removals() >= 5);
      expect(life.compute.deletions).toEqual([]);
      life.ci.setBusy(life.runnerName, false);
      life.compute.endJob(life.pod);
      const result = await life.run.result();
      expect(result.unregisterAttempts).toBeGreaterThanOrEqual(5);
      const { events } = await life.run.handle.fetchHistory();
      const releases =
        events?.filter(
          (event) =>
            event.activityTaskScheduledEventAttributes?.activityType?.name === 'removeRegistration',
        ) ?? [];
      expect(releases.length).toBeLessThanOrEqual(2);
    });

    test.each(['probes', 'none'] as const)(
      'row 7: a static runner is stopped when its job has had its time, also in a drain (tells by: %s)',
      async (tells) => {
        life.compute.probes = tells === 'probes';
        const startedAt = Date.now();
        await life.busy({ ephemeral: false, timeouts: { jobTimeout: '12s' } });
        await life.drain();
        const { waitingFor, waitingUntil } = await life.run.reaches(
          'its refusal',
          (status) => status.phase === 'Draining' && life.removals() > 1,
        );
        expect(waitingFor).toContain('until its job ends');
        expect(Date.parse(waitingUntil ?? '')).toBeGreaterThan(startedAt + 11_000);
        expect(await life.run.result()).toMatchObject({ outcome: 'aborted', cause: 'run_timeout' });
      },
    );

    test('row 6: ... and so is an ephemeral one without probes, as soon as the CI server reports it as busy', async () => {
      life.compute.probes = false;
      await life.busy({ timeouts: { jobTimeout: '3s' } });
      await life.drain();
      expect(await life.run.result()).toMatchObject({ outcome: 'aborted', cause: 'run_timeout' });
    });

    test('row 7: a rejection that arrives during a cancellation has no effect on the runner: its job continues', async () => {
      await life.idle({ ephemeral: false });
      life.ci.setBusy(life.runnerName, true);
      let answer = (): void => undefined;
      life.ci.removalHeld = new Promise((resolve) => (answer = resolve));
      await life.drain();
      await until('a DELETE under way', () => life.removals() === 1);
      life.compute.startJob(life.pod);
      await until('it called off', async () => await life.hasCancelledActivity());
      answer();
      await until('it asked again', () => life.removals() > 2);
      expect(life.compute.deletions).toEqual([]);
      life.ci.setBusy(life.runnerName, false);
      life.compute.endJob(life.pod);
      const result = await life.run.result();
      expect(result).toMatchObject({ outcome: 'succeeded' });
      expect(result.deregistrationWorkflowId).toBeUndefined();
      expect(life.compute.deletions.filter(({ underJob }) => underJob)).toEqual([]);
    });

    test('row 4a: the response of the removal is lost, and the runner ends because of it: it was drained, whatever its status', async () => {
      await life.idle({ ephemeral: false });
      let lose = (_error: Error): void => undefined;
      life.ci.removalHeld = new Promise((_resolve, reject) => (lose = reject));
      await life.drain();
      await until('a DELETE under way', () => life.removals() === 1);
      life.ci.forget(life.runnerName);
      life.compute.end(life.pod, 1);
      await until('it called off', async () => await life.hasCancelledActivity());
      life.ci.removalHeld = undefined;
      lose(new Error('connection lost'));
      expect(await life.run.result()).toMatchObject({ outcome: 'succeeded' });
    });

    test('row 8: ended but still busy there: the pod is deleted immediately, the registration is handed off and removed later', async () => {
      await life.busy();
      life.compute.end(life.pod, 137);
      const result = await life.run.result();
      expect(result).toMatchObject({
        outcome: 'failed',
        exitCode: 137,
        deregistrationWorkflowId: expect.stringContaining(life.runnerName),
      });
      expect(life.compute.pods.size + life.compute.secrets.size).toBe(0);
      expect(life.ci.registrations.size).toBe(1);
      life.ci.setBusy(life.runnerName, false);
      expect(
        await life.world.client.workflow.getHandle(result.deregistrationWorkflowId ?? '').result(),
      ).toMatchObject({ outcome: 'removed' });
      expect(life.ci.registrations.size).toBe(0);
    });

    test('row 8: another workflow removes the registration already: it is left to that one', async () => {
      await life.busy();
      const workflowId = `deregistration-${life.runnerName}`;
      await life.world.client.workflow.start(DEREGISTRATION_WORKFLOW, {
        workflowId,
        taskQueue: life.world.taskQueue,
        args: [
          {
            organization: 'acme',
            runner: { name: life.runnerName },
            initialRetryInterval: '100ms',
          },
        ],
      });
      life.compute.end(life.pod, 137);
      expect(await life.run.result()).toMatchObject({
        outcome: 'failed',
        deregistrationWorkflowId: workflowId,
      });
      life.ci.setBusy(life.runnerName, false);
      expect(await life.world.client.workflow.getHandle(workflowId).result()).toMatchObject({
        outcome: 'removed',
      });
    });

    test.each([
      [
        'row 9: a rate limit',
        new CiServerError('rate_limited', 'You have exceeded a secondary rate limit', {
          status: 403,
          retryAfterMs: 200,
        }),
      ],
      [
        'row 10: a refused credential, or a 404 on lost access',
        new CiServerError('credentials', 'Not Found', { status: 404 }),
      ],
      ['row 11: a server error', new CiServerError('unavailable', 'Bad Gateway', { status: 502 })],
    ])('%s decides nothing: retried, without an effect on the pod', async (_row, error) => {
      await life.busy({ ephemeral: false });
      life.ci.script.push({ method: 'remove', answer: error }, { method: 'remove', answer: error });
      await life.drain();
      await until('three tries', () => life.removals() >= 3);
      expect(life.compute.deletions).toEqual([]);
      life.ci.setBusy(life.runnerName, false);
      life.compute.endJob(life.pod);
      expect((await life.run.result()).outcome).toBe('succeeded');
      expect(life.compute.deletions.filter((deletion) => deletion.underJob)).toEqual([]);
    });

    test('an unknown rejection (422 that is not "busy") decides nothing either', async () => {
      await life.idle();
      life.ci.script.push({
        method: 'remove',
        answer: new CiServerError('rejected', 'Validation Failed', { status: 422 }),
      });
      await life.drain();
      expect((await life.run.result()).outcome).toBe('succeeded');
      expect(life.removals()).toBe(2);
    });

    test('cancelled while it cannot be provisioned: nothing is left, and the runner does not wait for the CI server', async () => {
      life.ci.script.push({
        method: 'register',
        answer: new CiServerError('unavailable', 'down'),
        repeat: true,
      });
      life.run = await life.world.start();
      await until('a try', () => life.ci.count('register') >= 1);
      await life.run.handle.signal('cancel', 'not needed any more');
      expect(await life.run.result()).toMatchObject({ outcome: 'aborted', cause: 'cancelled' });
      expect(life.compute.pods.size + life.compute.secrets.size + life.ci.registrations.size).toBe(
        0,
      );
    });

    test('provisioning that never succeeds ends errored, with its cause', async () => {
      life.ci.script.push({
        method: 'register',
        answer: new CiServerError('credentials', 'Bad credentials', { status: 401 }),
        repeat: true,
      });
      life.run = await life.world.start({ timeouts: { provisioning: '4s' } });
      expect(await life.run.result()).toMatchObject({
        outcome: 'errored',
        cause: 'credentials',
        message: expect.stringContaining('Bad credentials'),
      });
    });
  },
);
