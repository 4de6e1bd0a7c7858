import { afterAll, expect, test } from '@jest/globals';
import { runChaos } from '../../tools/chaos/run.ts';
import { down, up } from '../../tools/lab/lab.ts';
import { describeIf } from '../support/lab.ts';
import { chaosLabFolder } from '../support/labFolder.ts';

const SEED = 20_261_122;
const DURATION_MS = 60_000;
const RUNNERS = 15;

await describeIf(
  'chaos',
  async () => await up({ stateDir: chaosLabFolder(), nodes: 'kwok' }),
  { temporal: true, nodes: 'kwok' },
  ({ stateDir }) => {
    afterAll(async () => await down({ stateDir, purge: true }), 60_000);

    test('a minute with a fixed seed violates no invariant', async () => {
      const progress = (line: string): void => void process.stderr.write(`[chaos] ${line}\n`);
      const report = await runChaos({
        seed: SEED,
        durationMs: DURATION_MS,
        runners: RUNNERS,
        nodes: 'kwok',
        stateDir,
        progress,
      });
      expect(report.violations).toEqual([]);
      expect(Object.keys(report.faults).length).toBeGreaterThan(10);
      expect(report).toMatchObject({
        seed: SEED,
        runners: expect.any(Number),
        jobs: expect.any(Number),
      });
    }, 600_000);
  },
);
