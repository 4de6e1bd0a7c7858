/** Queries to a set whose declaration no worker has admitted yet: what is asked most when nothing goes on. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { setDeclarationQuery, setJobsQuery, setStatusQuery } from '../../core/contract/index.ts';
import { SetNotAdmittedError, querySetStatus } from '../../activities/runnerSet/querySetStatus.ts';
import { describeWithLab } from '../support/lab.ts';
import { memoryWorld, type MemoryWorld } from '../support/memoryWorld.ts';
import { SetRun } from '../support/setRun.ts';
import { untilSeen } from '../support/until.ts';

await describeWithLab('a set before its admission', { temporal: true }, (lab) => {
  let stage: MemoryWorld;
  beforeEach(async () => {
    stage = await memoryWorld(lab);
  });
  afterEach(async () => await stage.world.close());

  test('responds that it waits for it, with the declaration', async () => {
    const fails = (): never => {
      throw new Error('the worker is about to stop');
    };
    // Each attempt fails until the test lets one through.
    const attempt = { activity: 'admitSet' as const, answer: fails };
    stage.world.pretences.push(...Array.from({ length: 100 }, () => attempt));
    const set = await SetRun.start(stage, { replicas: 0 });
    const { client } = stage.world;
    const status = await untilSeen(
      'an answer',
      async () => await set.handle.query(setStatusQuery).catch(() => undefined),
      (answer) => answer !== undefined,
    );
    expect(status).toEqual({ name: set.name, awaitingAdmission: expect.any(String) });
    await expect(querySetStatus(client, set.handle.workflowId)).rejects.toThrow(
      SetNotAdmittedError,
    );
    // An empty list would say that it does not know the job.
    await expect(set.handle.query(setJobsQuery, { jobId: '7' })).rejects.toThrow('admission');
    expect(await set.handle.query(setDeclarationQuery)).toMatchObject({ replicas: 0 });
    stage.world.pretences.length = 0;
    const admitted = await set.status();
    expect(admitted).toMatchObject({ name: set.name, replicas: 0, runners: [] });
    expect(await set.handle.query(setJobsQuery, { jobId: '7' })).toEqual([]);
  });
});
