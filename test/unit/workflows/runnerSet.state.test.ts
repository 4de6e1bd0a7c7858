import { expect, test } from '@jest/globals';
import type { JobEvent } from '../../../core/contract/index.ts';
import { runnerWorkflowId } from '../../../core/domain/setRunnerNames.ts';
import { SetState } from '../../../workflows/runnerSet/state.ts';
import { setSpec } from '../../support/setModel.ts';

const NOW = 1_000_000;
const SUFFIX = 'abcdefghij';
const workflowId = runnerWorkflowId('linux', SUFFIX);
const runnerName = `linux-${SUFFIX}-0a1b2`;

const event = (action: JobEvent['action'], jobId: number, runner?: string): JobEvent => ({
  action, jobId, runAttempt: 1, repository: 'acme/app', labels: [], at: NOW, ...(runner === undefined ? {} : { runnerName: runner }),
});

/** A set whose one runner is at the first of two jobs. */
function busySet(ephemeral: boolean): SetState {
  const template = { organization: 'acme', ephemeral };
  const state = SetState.begin(setSpec({ minIdle: 0, max: 5, template }), { name: 'linux', minIdle: 0, max: 5, template }, {}, NOW);
  state.listed([], NOW);
  state.jobEvents([event('queued', 1)], NOW);
  state.starting([{ workflowId }], NOW);
  state.online({ workflowId, runnerName }, NOW);
  state.jobEvents([event('in_progress', 1, runnerName), event('queued', 2)], NOW);
  return state;
}

test('a job does not wait for an ephemeral runner that has had its job to be gone', () => {
  const state = busySet(true);
  expect(state.facts.desired).toBe(2);
  state.jobEvents([event('completed', 1, runnerName)], NOW);
  expect({ desired: state.facts.desired, runners: state.runners.all().map((runner) => runner.state) }).toEqual({ desired: 2, runners: ['busy'] });
  state.ended({ workflowId, runnerName, outcome: 'succeeded', wasOnline: true, ranJob: true }, NOW);
  expect({ desired: state.facts.desired, runners: state.runners.all() }).toEqual({ desired: 1, runners: [] });
});

test('a static one takes it', () => {
  const state = busySet(false);
  state.jobEvents([event('completed', 1, runnerName)], NOW);
  expect({ desired: state.facts.desired, runners: state.runners.all().map((runner) => runner.state) }).toEqual({ desired: 1, runners: ['idle'] });
});
