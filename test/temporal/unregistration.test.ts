/** Rows of the unregistration table, on the real Temporal server: those of every runner. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { CiServerError } from '../../activities/ports/ciServerError.ts';
import { describeWithLab } from '../support/lab.ts';
import { UnregistrationRun } from '../support/unregistrationRun.ts';
import { until } from '../support/until.ts';

await describeWithLab('unregistration', { temporal: true }, (lab) => {
  let life: UnregistrationRun;

  beforeEach(async () => {
    life = await UnregistrationRun.open(lab);
  });
  afterEach(async () => await life.close());

  test('row 2: an ephemeral runner that ended its job with 0 has removed itself: no request', async () => {
    await life.busy();
    life.finishJob();
    expect(await life.run.result()).toMatchObject({ outcome: 'succeeded', unregisterAttempts: 0 });
    expect(life.removals()).toBe(0);
  });

  test('row 3: 204, and the runner reports idle: the pod is deleted', async () => {
    await life.idle();
    await life.drain();
    expect(await life.run.result()).toMatchObject({ outcome: 'succeeded', unregisterAttempts: 1 });
    expect(life.compute.deletions).toMatchObject([{ underJob: false }]);
    expect(life.ci.registrations.size).toBe(0);
  });

  test('row 3: a 204 for a runner that has just started a job never ends the job', async () => {
    life.compute.probes = false;
    await life.busy();
    life.ci.lies = true;
    await life.drain();
    await until('the lie', () => life.removals() === 1);
    await life.run.reaches(
      'waiting for its end',
      (status) => status.waitingFor?.includes('ends by itself') === true,
    );
    expect(life.compute.deletions).toEqual([]);
    life.finishJob();
    expect((await life.run.result()).outcome).toBe('succeeded');
    expect(life.compute.deletions.filter((deletion) => deletion.underJob)).toEqual([]);
  });

  test('row 3: a static runner that reports busy continues after a 204', async () => {
    await life.busy({ ephemeral: false });
    life.ci.lies = true;
    await life.drain();
    await until('the lie', () => life.removals() === 1);
    expect(life.compute.deletions).toEqual([]);
    life.compute.endJob(life.pod);
    await life.run.result();
    expect(life.compute.deletions).toMatchObject([{ underJob: false }]);
  });

  test('row 4: a runner about to register continues after a 404 and is removed when it has registered', async () => {
    life.compute.probes = false;
    life.run = await life.world.start({ ephemeral: false });
    life.pod = await life.run.pod();
    life.compute.start(life.pod);
    ({ runnerName: life.runnerName } = await life.run.reaches(
      'Registering',
      (status) => status.phase === 'Registering',
    ));
    await life.drain();
    await until('several looks', () => life.ci.count('find') >= 4);
    expect(life.compute.deletions).toEqual([]);
    life.ci.connect(life.runnerName);
    await until('its removal', () => life.ci.registrations.size === 0 && life.removals() === 1);
    life.compute.end(life.pod, 0);
    expect(await life.run.result()).toMatchObject({ outcome: 'succeeded' });
  });

  test('row 4: a runner that has not registered by its deadline never will', async () => {
    life.compute.probes = false;
    life.run = await life.world.start({ ephemeral: false, timeouts: { registration: '400ms' } });
    life.pod = await life.run.pod();
    life.compute.start(life.pod);
    expect(await life.run.result()).toMatchObject({
      outcome: 'errored',
      cause: 'never_registered',
    });
    expect(life.compute.pods.size).toBe(0);
  });

  test('row 4: busy by its own signal overrides any 404', async () => {
    await life.busy({ ephemeral: false });
    life.ci.script.push({ method: 'remove', answer: 'absent', repeat: true });
    life.ci.script.push({ method: 'find', answer: 'absent', repeat: true });
    await life.drain();
    await life.run.reaches(
      'waiting for the job',
      (status) => status.waitingFor?.includes('job is running') === true,
    );
    expect(life.compute.deletions).toEqual([]);
    life.compute.endJob(life.pod);
    await life.run.result();
    expect(life.compute.deletions).toMatchObject([{ underJob: false }]);
  });

  test('row 5: stop accepted and 422: the pod is stopped with its own grace period, then decided again', async () => {
    await life.busy();
    await life.run.handle.signal('cancel');
    const result = await life.run.result();
    expect(result).toMatchObject({ outcome: 'aborted', cause: 'cancelled' });
    expect(life.compute.deletions[0]).toMatchObject({
      gracePeriodSeconds: undefined,
      underJob: true,
    });
    expect(life.removals()).toBeGreaterThanOrEqual(2);
  });

  test('row 5: force does not wait for the CI server', async () => {
    await life.busy();
    life.ci.script.push({
      method: 'remove',
      answer: new CiServerError('unavailable', 'down'),
      repeat: true,
    });
    await life.run.handle.signal('cancel', { mode: 'force' });
    await until('the kill', () => life.compute.deletions.length === 1);
    expect(life.compute.deletions[0]).toMatchObject({ gracePeriodSeconds: 1 });
    life.ci.script.length = 0;
    life.ci.setBusy(life.runnerName, false);
    expect((await life.run.result()).outcome).toBe('aborted');
  });

  test('row 6: a busy ephemeral runner is not retried often; a re-check, and its end, wake the workflow', async () => {
    life.compute.probes = false;
    await life.busy({ intervals: { busyCheck: '300ms' } });
    await life.drain();
    await until('the safety re-check', () => life.removals() >= 2);
    expect(life.compute.deletions).toEqual([]);
    life.finishJob();
    expect((await life.run.result()).outcome).toBe('succeeded');
    expect(life.removals()).toBeLessThan(20);
  });
});
