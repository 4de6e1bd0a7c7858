/** What a set's workflow may ask of the world. */
import { cancellationSignal } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { pMapSettled } from 'p-map';
import { defined } from '../../core/defined.ts';
import { runnerInput } from '../../core/domain/slots.ts';
import { toFailure } from '../failures.ts';
import { withHeartbeats } from '../heartbeats.ts';
import { RunnerRefusedError, type ActivityPorts, type RunnerWorkflows } from '../ports.ts';
import { admitSet } from './admitSet.ts';
import { scheduleNow } from './schedules.ts';
import type { CiJobs } from '../../core/domain/ciServer.ts';
import type { SetActivities, Timed, StartRunnersInput, LookForJobsInput } from '../../core/calls/index.ts';

/** Requests to Temporal under way at once for one set. */
const AT_ONCE = 10;

export function createSetActivities(ports: ActivityPorts): SetActivities {
  const workflows = (): RunnerWorkflows => {
    if (ports.workflows === undefined) throw ApplicationFailure.nonRetryable('this worker was built without access to Temporal for sets (port `workflows`)', 'NoWorkflowsPort');
    return ports.workflows;
  };
  return {
    admitSet: async (input) => admitSet(ports, input),
    clock: async () => ({ at: Date.now() }),
    evaluateSchedules: async ({ schedules }) => {
      const at = Date.now();
      return { at, schedule: scheduleNow(schedules, at) };
    },
    startRunners: (input) => startRunners(workflows(), input),
    drainRunners: async ({ runners }) => {
      const gone: string[] = [];
      await withHeartbeats(`${runners.length} runners to drain`, async () =>
        await each(runners, async ({ workflowId, why }) => {
          if ((await workflows().drain(workflowId, why)) === 'gone') gone.push(workflowId);
        }),
      );
      return { at: Date.now(), gone };
    },
    listRunners: async ({ set }) => {
      const runners = await withHeartbeats('list of runners', async () => await workflows().list(set));
      return { at: Date.now(), runners };
    },
    lookForQueuedJobs: (input) => lookForQueuedJobs(ports, workflows(), input),
  };
}

async function startRunners(workflows: RunnerWorkflows, { set, generation, ephemeral, template, runners }: StartRunnersInput): Promise<Timed & { refused: string[]; why?: string }> {
  const refused: string[] = [];
  let why: string | undefined;
  await withHeartbeats(`${runners.length} runners to start`, async () =>
    await each(runners, async ({ workflowId, slot }) => {
      const memo = defined({ generation, ephemeral, slot });
      try {
        await workflows.start({ workflowId, set, input: runnerInput(template, set, slot), memo });
      } catch (error) {
        if (!(error instanceof RunnerRefusedError)) throw error;
        refused.push(workflowId);
        why = error.message;
      }
    }),
  );
  return defined({ at: Date.now(), refused, why });
}

async function lookForQueuedJobs({ ciServers }: ActivityPorts, workflows: RunnerWorkflows, { set, taskQueue, scope, credential, labels }: LookForJobsInput): Promise<CiJobs | null> {
  try {
    const seen = await withHeartbeats('list of queued jobs', async () => await ciServers.get(credential).queuedJobs?.(scope, labels, cancellationSignal()));
    if (seen === undefined) return null;
    return { ...seen, jobs: await workflows.jobsOf({ set, taskQueue, scope }, seen.jobs) };
  } catch (error) {
    throw toFailure(error, { credentialsRetryMs: 60_000 }, false);
  }
}

/** Does all of it, some at a time: one that fails keeps no other from being done. @throws the first failure, when nothing is under way any more */
async function each<T>(items: readonly T[], run: (item: T) => Promise<void>): Promise<void> {
  for (const result of await pMapSettled(items, run, { concurrency: AT_ONCE })) if (result.status === 'rejected') throw result.reason;
}
