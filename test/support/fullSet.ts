import type { JobEvent, RunnerSetInput } from '../../core/contract/index.ts';
import { MAX_SET_NAME, runnerWorkflowId } from '../../core/domain/setRunnerNames.ts';
import { MAX_HOLDS } from '../../core/domain/scale.ts';
import { MAX_RUNNERS } from '../../core/input/runnerSetSchema.ts';
import { SetState } from '../../workflows/runnerSet/state.ts';
import { setSpec } from './setModel.ts';

/** IDs of GitHub's jobs have 11 digits by now. */
export const FIRST_JOB_ID = 70_000_000_000;
/** IDs of GitHub's workflow runs. */
const FIRST_RUN_ID = 20_000_000_000;
const NOW = 1_800_000_000_000;
const OVER = 20_000;
const REPOSITORIES = 2_000;

/** Suffix of a runner's workflow id. */
export const SUFFIXES = (index: number): string => index.toString(36).padStart(10, '0');

const repository = (index: number): string =>
  `acme/a-repository-with-a-name-of-40-char-${String(index % REPOSITORIES).padStart(5, '0')}`;

const LONGEST_NAME = 'n'.repeat(MAX_SET_NAME);

/** The largest set that can be declared: a template of nearly 256 KiB. */
const LARGEST: RunnerSetInput = {
  name: LONGEST_NAME,
  holds: Array.from({ length: MAX_HOLDS }, (_none, index) =>
    runnerWorkflowId(LONGEST_NAME, SUFFIXES(index)),
  ),
  minIdle: 0,
  max: MAX_RUNNERS,
  template: { organization: 'acme', env: { LARGE: 'x'.repeat(255 * 1024) } },
};

/**
 * A set with everything at its documented limit: busy runners, as many jobs in the
 * queue, ended jobs, holds and traces.
 * @param runners - another number of runners, with a proportional part of everything else
 */
export function fullSet(input = LARGEST, runners = MAX_RUNNERS): SetState {
  const { name } = input;
  const over = runners === MAX_RUNNERS ? OVER : 0;
  const state = SetState.begin(setSpec(input), input, {}, NOW);
  const at = (index: number): number => NOW + index * 137;
  const id = (index: number): string => String(FIRST_JOB_ID + index * 3);
  // Each job has a run of its own, as if other jobs started in between.
  const runId = (index: number): string => String(FIRST_RUN_ID + index * 1_009);
  const event = (index: number, more: Partial<JobEvent>): JobEvent => ({
    action: 'queued',
    jobId: id(index),
    runAttempt: 1,
    runId: runId(index),
    repository: repository(index),
    labels: [],
    at: at(index) - 1_234,
    traceparent: `00-${String(index).padStart(32, '1')}-00f067aa0ba902b7-01`,
    ...more,
  });
  for (let index = 0; index < over; index++)
    state.jobReports.onJobEvents([event(index, { action: 'completed' })], at(index));
  for (let index = 0; index < runners; index++) {
    const [job, suffix] = [over + index, SUFFIXES(index)];
    const runnerName = `${name}-${suffix}-0a1b2c3d4e`;
    state.onRunnersStarting([{ workflowId: runnerWorkflowId(name, suffix) }], at(job));
    state.onRunnerOnline(
      { workflowId: runnerWorkflowId(name, suffix), runnerName },
      at(job) + 30_000,
    );
    state.jobReports.onJobEvents(
      [event(job, { action: 'in_progress', runnerName })],
      at(job) + 60_000,
    );
  }
  const base = over + runners;
  for (let index = base; index < base + runners; index++)
    state.jobReports.onJobEvents([event(index, {})], at(index));
  // A check has found all of them.
  state.jobReports.onQueueCheckStarted(at(base + runners));
  state.jobReports.onQueueChecked(
    {
      checkedAt: at(base + runners),
      jobs: Array.from({ length: runners }, (_none, index) => ({
        id: id(base + index),
        runAttempt: 1,
        runId: runId(base + index),
        repository: repository(base + index),
        labels: [],
        status: 'queued',
        queuedAt: at(base + index),
      })),
      complete: false,
      absent: [],
      endedSets: [],
    },
    at(base + runners) + 4_000,
  );
  state.onRunnersListed([], [], at(base + runners));
  state.updateDemand(at(base + runners) + 5_000);
  return state;
}
