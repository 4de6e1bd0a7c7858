/** Handlers of the signals and queries of a set. */
import { setHandler, workflowInfo } from '@temporalio/workflow';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import {
  jobEventsSignal,
  parseSetWorkflowId,
  queueCheckedSignal,
  runnerEventsSignal,
  scaleSetReportSignal,
  runnerVersionSignal,
  setDeclarationQuery,
  setJobsQuery,
  setCommandSignal,
  setStatusQuery,
  type RunnerSetInput,
} from '../../core/contract/index.ts';
import { parseJobEvents, parseQueueCheckResult, parseRunnerVersion } from './jobSignals.ts';
import { setJobs } from './jobStatus.ts';
import type { RunningSet } from './reconcile.ts';
import { parseScaleSetReport } from './scaleSetDemand.ts';
import { statusBeforeAdmission } from './status.ts';
import { parseRunnerEvents, applyRunnerEvents } from './runnerEvents.ts';

/**
 * Registers the handlers of signals. A set accepts no updates. If an update reaches a worker together with
 * other events, and the workflow is not in the worker's cache, a later replay processes them in
 * another order (https://github.com/temporalio/sdk-python/issues/673), and nothing would unblock
 * the set.
 */
export function registerSignals(set: RunningSet): void {
  set.openGate([
    {
      name: jobEventsSignal.name,
      description: 'Events of jobs that this set serves',
      take: (body) => takeJobEvents(set, body),
    },
    {
      name: queueCheckedSignal.name,
      description: 'Jobs found by a check of the CI server',
      take: (body) => takeQueueCheck(set, body),
    },
    {
      name: runnerEventsSignal.name,
      description: 'Runners of this set are online, have begun their job, or have ended',
      take: (body) => takeRunnerEvents(set, body),
    },
    {
      name: scaleSetReportSignal.name,
      description: 'Jobs that GitHub has assigned to the scale set of this set',
      take: (body) => takeScaleSetReport(set, body),
    },
    {
      name: runnerVersionSignal.name,
      description: 'Until when the CI server accepts the runner version of this set',
      take: (body) => takeRunnerVersion(set, body),
    },
    {
      name: setCommandSignal.name,
      description:
        'Command of an operator; start the workflow setCommand, which sends it and returns the answer',
      take: (request) => {
        set.receiveCommand(request);
        return 0;
      },
    },
  ]);
}

/**
 * Registers the queries. They are answered from the start of a run, also while its declaration
 * waits for admission.
 * @param current - returns the set, once it is admitted
 */
export function registerQueries(
  declaration: RunnerSetInput,
  current: () => RunningSet | undefined,
): void {
  const name = parseSetWorkflowId(workflowInfo().workflowId);
  setHandler(
    setStatusQuery,
    (request) => current()?.status(request) ?? statusBeforeAdmission(name),
    { description: 'Runners, jobs and waits of the set' },
  );
  setHandler(
    setJobsQuery,
    (request) => {
      const state = current()?.state;
      // An empty list would say that the set does not know the job.
      if (state === undefined) throw new Error(statusBeforeAdmission(name).awaitingAdmission);
      return setJobs(state, request);
    },
    { description: 'Jobs that the set knows, by job or repository' },
  );
  setHandler(setDeclarationQuery, () => current()?.state.currentDeclaration() ?? declaration, {
    description: 'Current declaration of the set',
  });
}

function takeJobEvents(set: RunningSet, body: unknown): number {
  const { events, ...when } = parseJobEvents(body);
  set.receive((state, now) => state.jobReports.onJobEvents(events, now), {
    size: events.length,
    ...when,
  });
  return events.length;
}

function takeQueueCheck(set: RunningSet, body: unknown): number {
  const seen = parseQueueCheckResult(body);
  if (seen === undefined) return 0;
  const size = seen.jobs.length;
  set.receive((state, now) => state.jobReports.onQueueChecked(seen, now), { size });
  return size;
}

function takeRunnerVersion(set: RunningSet, body: unknown): number {
  const read = parseRunnerVersion(body);
  if (read === undefined) return 0;
  const { at, ...runnerVersion } = read;
  set.receive((state) => (state.facts.runnerVersion = runnerVersion), { at });
  return 1;
}

function takeScaleSetReport(set: RunningSet, body: unknown): number {
  const report = parseScaleSetReport(body);
  if (report === undefined) return 0;
  const size = 1 + report.started.length + report.completed.length;
  set.receive((state, now) => state.jobReports.onScaleSetReport(report, now), {
    size,
    at: report.at,
  });
  return size;
}

function takeRunnerEvents(set: RunningSet, body: unknown): number {
  const events = parseRunnerEvents(body);
  set.receive((state, now) => applyRunnerEvents(state, events, now), {
    size: events.length,
    ...omitUndefined({ at: events.at(-1)?.at }),
  });
  return events.length;
}
