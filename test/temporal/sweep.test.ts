import { isDeepStrictEqual } from 'node:util';
import { WorkflowFailedError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { FAILURE_TYPES, type SweepLocationInput } from '../../core/activities/index.ts';
import {
  SEARCH_ATTRIBUTES,
  SWEEP_WORKFLOW,
  sweepWorkflowId,
  type SweepMark,
  type SweepReport,
} from '../../core/contract/index.ts';
import { lastMarks } from '../../activities/sweep/lastMarks.ts';
import type { HoldfastWorld } from '../support/holdfastWorld.ts';
import { describeWithLab } from '../support/lab.ts';
import { memoryWorld } from '../support/memoryWorld.ts';
import { sweepReport } from '../support/sweepReports.ts';
import { until } from '../support/until.ts';

const GHOST: SweepMark = {
  kind: 'orphaned_registration',
  key: 'orgs/acme/runner-1#17',
  since: '2026-01-01T00:00:00.000Z',
};

await describeWithLab('the sweep as a workflow', { temporal: true }, (lab) => {
  let world: HoldfastWorld;
  /** What the sweeps were given. */
  let asked: SweepLocationInput[];

  beforeEach(async () => {
    ({ world } = await memoryWorld(lab));
    asked = [];
  });
  afterEach(async () => await world.close());

  /** The next tries of a sweep answer, or fail with, these. */
  function answers(...answered: (SweepReport | Error)[]): void {
    for (const answer of answered) {
      world.pretences.push({
        activity: 'sweepPlace',
        answer: (input: SweepLocationInput) => {
          asked.push(input);
          if (answer instanceof Error) throw answer;
          return answer;
        },
      });
    }
  }
  const start = async (...args: unknown[]) =>
    await world.client.workflow.start(SWEEP_WORKFLOW, {
      workflowId: sweepWorkflowId(world.taskQueue),
      taskQueue: world.taskQueue,
      args,
    });
  const detailsOf = async (
    handle: Awaited<ReturnType<typeof start>>,
  ): Promise<string | undefined> =>
    (await handle.query<{ currentDetails?: string }>('__temporal_workflow_metadata'))
      .currentDetails;

  test("its result is the report; a list and Temporal's UI show what it did", async () => {
    const report = sweepReport({
      counts: { orphaned_pod: { found: 1, repaired: 1 } },
      marks: [GHOST],
    });
    answers(report);
    const handle = await start({ force: true }, [GHOST]);
    expect(await handle.result()).toEqual(report);
    expect(asked).toEqual([{ input: { force: true }, taskQueue: world.taskQueue }]);
    const { typedSearchAttributes } = await handle.describe();
    expect(typedSearchAttributes.get(SEARCH_ATTRIBUTES.outcome)).toBe('repaired');
    expect(typedSearchAttributes.get(SEARCH_ATTRIBUTES.place)).toBe(report.location);
    expect(await detailsOf(handle)).toBe(
      '1 orphaned_pod (1 repaired); checked 120 runners, 119 pods',
    );
  });

  test('an incomplete list is retried; if it stays incomplete the workflow fails, and names it', async () => {
    const report = sweepReport({ incompleteLists: [{ list: 'pods', reason: '503' }] });
    const incomplete = (): Error =>
      ApplicationFailure.create({
        message: 'nothing was touched',
        type: FAILURE_TYPES.sweepIncomplete,
        nextRetryDelay: 1,
        details: [report],
      });
    answers(incomplete(), sweepReport());
    expect(await (await start()).result()).toEqual(sweepReport());

    answers(incomplete(), incomplete(), incomplete());
    const handle = await start();
    const error: unknown = await handle.result().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(WorkflowFailedError);
    expect((error as WorkflowFailedError).cause).toMatchObject({
      message: 'nothing was touched',
      type: 'SweepIncomplete',
      details: [report],
    });
    expect(await detailsOf(handle)).toBe('nothing was touched');
    expect(asked).toHaveLength(5);
  });

  test('an invalid input fails immediately, with every invalid field', async () => {
    const wrong = await start({ maxPodAge: 'soon', dryrun: true });
    await expect(wrong.result()).rejects.toMatchObject({
      cause: { type: 'InvalidInput', message: expect.stringMatching(/maxPodAge.*dryrun/) },
    });
  });

  test('the next one uses the marks of the last completed one, and nothing that its starter passes in', async () => {
    const failing = ApplicationFailure.create({ message: 'no', nonRetryable: true });
    answers(sweepReport({ marks: [GHOST] }), failing);
    const marks = async (): Promise<unknown> => await lastMarks(world.client, world.taskQueue);
    const forged = { ...GHOST, since: new Date(0).toISOString() };
    await (await start({}, [forged])).result();
    await until('its marks to be found', async () => isDeepStrictEqual(await marks(), [GHOST]));
    await expect((await start()).result()).rejects.toBeInstanceOf(WorkflowFailedError);
    expect(await marks()).toEqual([GHOST]);
  });
});
