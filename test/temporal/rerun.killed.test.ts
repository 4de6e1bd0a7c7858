/** A worker that is killed between the claim of a rerun and its record neither loses the job nor reruns it twice. */
import { afterAll, expect, test } from '@jest/globals';
import { killReruns } from '../support/killedReruns.ts';
import { describeWithLab } from '../support/lab.ts';
import { killWorkerProcesses } from '../support/workerProcess.ts';

await describeWithLab('a worker that is killed during a rerun', { temporal: true }, (lab) => {
  afterAll(killWorkerProcesses);

  test('four times at the force-cancel of the run: each job runs again once', async () => {
    const kills = { lanes: 4, rounds: 1, at: 'forceCancel' } as const;
    const reruns = await killReruns(lab.temporal?.address ?? '', kills);
    expect(reruns).toHaveLength(4);
    for (const { result, attempts } of reruns) {
      expect(result).toMatchObject({ outcome: 'requested', attempt: 2, forceCancelled: true });
      expect(attempts).toEqual([1, 2]);
    }
  });

  // test/nightly/reruns.test.ts has 100.
  test('four times: each job runs again once', async () => {
    const reruns = await killReruns(lab.temporal?.address ?? '', { lanes: 4, rounds: 1 });
    expect(reruns).toHaveLength(4);
    for (const { result, attempts } of reruns) {
      expect(result).toMatchObject({ outcome: 'requested', attempt: 2 });
      expect(attempts).toEqual([1, 2]);
    }
  });
});
