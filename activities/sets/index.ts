/** What a set's workflow may ask of the world. */
import { ApplicationFailure } from '@temporalio/common';
import { cancellationSignal } from '@temporalio/activity';
import type { RunnerSetInput } from '../../workflows/setContract.ts';
import type { SetScheduleSpec } from '../../workflows/setInput.ts';
import { runnerInput } from '../../workflows/setSlots.ts';
import type { ListedRunner } from '../../workflows/setRunners.ts';
import type { ScheduleNow } from '../../workflows/setState.ts';
import { toFailure } from '../failures.ts';
import { withHeartbeats } from '../heartbeats.ts';
import type { ActivityPorts, CiJobs, Scope } from '../ports.ts';
import { admitSet, type AdmittedSet } from './admitSet.ts';
import { RunnerRefusedError, type RunnerWorkflows } from './runnerWorkflows.ts';
import { scheduleNow } from './schedules.ts';

export interface StartRunnersInput {
  readonly set: string;
  readonly generation: string;
  readonly ephemeral: boolean;
  readonly template: RunnerSetInput['template'];
  readonly runners: readonly { readonly workflowId: string; readonly slot?: number }[];
}

export interface LookForJobsInput {
  readonly set: string;
  /** Where the sets are that the jobs may be for; the look itself is taken on the queue of the credential. */
  readonly taskQueue: string;
  readonly scope: Scope;
  readonly credential: string;
  readonly labels: readonly string[];
}

/** A set goes by the time that its activities tell: see workflows/runningSet.ts. */
export interface Timed {
  /** When it was done (ms since the epoch). */
  readonly at: number;
}

export interface SetActivities {
  /** Checks and completes the declaration of a set; asks nobody. */
  admitSet(input: { input: unknown }): Promise<AdmittedSet>;
  /** What time it is. */
  clock(): Promise<Timed>;
  /** Which schedule holds now. */
  evaluateSchedules(input: { schedules: readonly SetScheduleSpec[] }): Promise<Timed & { schedule: ScheduleNow }>;
  /** Starts runners' workflows. Those that Temporal refuses come back; everything else is tried again. */
  startRunners(input: StartRunnersInput): Promise<Timed & { refused: string[]; why?: string }>;
  /** Asks runners to drain. @returns those that have ended already */
  drainRunners(input: { runners: readonly { workflowId: string; why: string }[] }): Promise<Timed & { gone: string[] }>;
  /** The running runners of a set, by Temporal's visibility. */
  listRunners(input: { set: string }): Promise<Timed & { runners: ListedRunner[] }>;
  /** The jobs that this set has to serve, by the CI server's own list. `null`: it has none. */
  lookForQueuedJobs(input: LookForJobsInput): Promise<CiJobs | null>;
}

/** What the activities of sets are built from, besides the ports of all. */
export interface SetPorts {
  /** Absent: this worker can run no set. */
  readonly workflows?: RunnerWorkflows;
}

/** Requests to Temporal under way at once for one set. */
const AT_ONCE = 10;

export function createSetActivities(ports: ActivityPorts & SetPorts): SetActivities {
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
      const memo = { generation, ephemeral, ...(slot === undefined ? {} : { slot }) };
      try {
        await workflows.start({ workflowId, set, input: runnerInput(template, set, slot), memo });
      } catch (error) {
        if (!(error instanceof RunnerRefusedError)) throw error;
        refused.push(workflowId);
        why = error.message;
      }
    }),
  );
  return { at: Date.now(), refused, ...(why === undefined ? {} : { why }) };
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

/** Runs all, some at a time; the first failure is thrown when nothing is under way any more. */
async function each<T>(items: readonly T[], run: (item: T) => Promise<void>): Promise<void> {
  const rest = items.values();
  const worker = async (): Promise<void> => {
    for (const item of rest) await run(item);
  };
  const results = await Promise.allSettled(Array.from({ length: Math.min(AT_ONCE, items.length) }, worker));
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}
