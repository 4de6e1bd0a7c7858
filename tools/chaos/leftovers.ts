import {
  RUNNER_WORKFLOW,
  SEARCH_ATTRIBUTES,
  SWEEP_WORKFLOW,
  statusQuery,
  type RunnerStatus,
} from '../../core/contract/index.ts';
import { runningRunnersQuery } from '../../core/domain/visibility.ts';
import type { Violation } from './invariants.ts';
import { runnerOfPod, workflowOfRunner } from './observer.ts';
import type { UnmetCondition } from './unmetCondition.ts';
import type { Workload } from './workload.ts';
import type { ChaosEnvironment } from './world.ts';

/** Maximum number of events in one run of a workflow. Temporal terminates much longer runs. */
const MAX_EVENTS = 10_000;
const CALL_MS = 5_000;
/**
 * Intended waits, which do not end with a fault: while something may still be created
 * (`intervals.lateCreationWindow`), and for a minute after each rejection.
 */
const INTENDED_WAITS = [
  'objects that the interrupted provisioning may still create',
  'the cluster to accept a deletion',
];

/**
 * Returns the sets that have a job or not their desired size, and the runners that are neither idle
 * in their set nor in an intended wait.
 */
export async function unsettledRunners(
  world: ChaosEnvironment,
  users: Workload,
): Promise<UnmetCondition[]> {
  const { client, name } = world;
  const sets = await users.sets();
  const idle = new Set(
    sets.flatMap(({ runners }) =>
      runners.filter(({ state }) => state === 'idle').map(({ workflowId }) => workflowId),
    ),
  );
  const known = sets.flatMap(({ runners }) => runners.map(({ workflowId }) => workflowId));
  const obstacles: UnmetCondition[] = sets.flatMap(
    ({
      name: set,
      templateHash: now,
      jobs: { queued, running },
      runners,
      min,
      blockedReason,
      waitingFor,
    }) => {
      const ready = runners.filter(
        ({ state, templateHash }) => state === 'idle' && templateHash === now,
      ).length;
      return queued + running === 0 && ready === min
        ? []
        : [
            {
              what: `set ${set}: ${ready} of ${min} idle, ${queued + running} jobs, ${blockedReason ?? ''} ${waitingFor ?? ''}`,
            },
          ];
    },
  );
  const runners = new Set([...known, ...users.standaloneRunners()]);
  for await (const { workflowId } of client.workflow.list({ query: runningRunnersQuery(name) }))
    runners.add(workflowId);
  for (const workflowId of runners) {
    if (idle.has(workflowId)) continue;
    const seen = await statusOf(world, workflowId);
    if (seen !== undefined && !isIntendedWait(seen))
      obstacles.push({ what: describeRunner(workflowId, seen), workflowId });
  }
  return obstacles;
}

/**
 * Returns the runners that are starting or ending. Runners whose pod the cluster has not started
 * yet, or is still deleting, are excluded.
 */
export async function activeRunners(world: ChaosEnvironment): Promise<UnmetCondition[]> {
  const { client, name, observer } = world;
  const excused = new Set(
    observer
      .openJobs()
      .flatMap(({ runner_name: runner, status }) =>
        runner === null || status === 'queued' ? [] : [workflowOfRunner(runner)],
      ),
  );
  for (const { workflowId, started, stopping } of observer.pods())
    if (!started || stopping) excused.add(workflowId);
  const active: string[] = [];
  for await (const { workflowId, typedSearchAttributes: found } of client.workflow.list({
    query: runningRunnersQuery(name),
  })) {
    if (!atRest(found.get(SEARCH_ATTRIBUTES.phase)) && !excused.has(workflowId))
      active.push(workflowId);
  }
  const seen = await Promise.all(
    active.map(async (workflowId) => ({
      workflowId,
      status: await statusOf(world, workflowId),
    })),
  );
  return seen.flatMap(({ workflowId, status }) =>
    status === undefined || atRest(status.phase) || isIntendedWait(status)
      ? []
      : [{ what: describeRunner(workflowId, status), workflowId }],
  );
}

const isIntendedWait = ({ waitingFor }: RunnerStatus): boolean =>
  INTENDED_WAITS.some((wait) => waitingFor?.startsWith(wait));

const atRest = (phase: string | undefined): boolean => phase === 'Idle' || phase === 'Busy';

const describeRunner = (workflowId: string, { phase, waitingFor }: RunnerStatus): string =>
  `${workflowId} is ${phase}${waitingFor === undefined ? '' : `, waits for ${waitingFor}`}`;

/** Returns the status of a runner, or `undefined` if it has ended. */
async function statusOf(
  { client }: ChaosEnvironment,
  workflowId: string,
): Promise<RunnerStatus | undefined> {
  const handle = client.workflow.getHandle(workflowId);
  return await client.withDeadline(Date.now() + CALL_MS, async () =>
    (await handle.describe()).status.name === 'RUNNING'
      ? await handle.query(statusQuery)
      : undefined,
  );
}

/** Returns the objects, registrations and workflows that the runners have left behind. */
export async function leftovers({
  core,
  name: namespace,
  client,
  simulator,
}: ChaosEnvironment): Promise<UnmetCondition[]> {
  const [pods, secrets, claims] = await Promise.all([
    core.listNamespacedPod({ namespace }),
    core.listNamespacedSecret({ namespace }),
    core.listNamespacedPersistentVolumeClaim({ namespace }),
  ]);
  const left: UnmetCondition[] = [
    ...pods.items.map(({ metadata }) => ({
      what: `pod ${metadata?.name}`,
      workflowId: runnerOfPod(metadata?.name ?? ''),
    })),
    ...secrets.items.map(({ metadata }) => ({ what: `Secret ${metadata?.name}` })),
    ...claims.items.map(({ metadata }) => ({ what: `claim ${metadata?.name}` })),
    ...simulator.runners().map(({ name, status, busy }) => ({
      what: `registration ${name} (${status}${busy ? ', busy' : ''})`,
    })),
  ];
  for await (const { workflowId, type } of client.workflow.list({
    query: `TaskQueue = '${namespace}' AND ExecutionStatus = 'Running' AND WorkflowType != '${SWEEP_WORKFLOW}'`,
  })) {
    left.push({
      what: `${type} ${workflowId}`,
      ...(type === RUNNER_WORKFLOW ? { workflowId } : {}),
    });
  }
  return left;
}

/**
 * Adds the end of every runner to the timeline, and finds histories that are too long.
 * @returns the number of runners that have ended, and the violations
 */
export async function recordEnds({
  client,
  name,
  observer,
}: ChaosEnvironment): Promise<{ runners: number; violations: Violation[] }> {
  const violations: Violation[] = [];
  let runners = 0;
  for await (const {
    workflowId,
    type,
    status,
    historyLength,
    typedSearchAttributes: found,
  } of client.workflow.list({ query: `TaskQueue = '${name}'` })) {
    if (historyLength > MAX_EVENTS)
      violations.push({
        rule: 'histories stay short',
        message: `${type} ${workflowId} has ${historyLength} events in one run`,
        workflowId,
      });
    if (status.name === 'CONTINUED_AS_NEW' || status.name === 'RUNNING') continue;
    if (type !== RUNNER_WORKFLOW) {
      // A sweep that cannot read all lists changes nothing, and fails for this reason.
      if (status.name !== 'COMPLETED' && type !== SWEEP_WORKFLOW)
        violations.push({
          rule: 'every workflow completes',
          message: `${type} ${workflowId} ended as ${status.name}`,
          workflowId,
        });
      continue;
    }
    runners += 1;
    const outcome = found.get(SEARCH_ATTRIBUTES.outcome);
    const cause = found.get(SEARCH_ATTRIBUTES.cause);
    observer.add({
      kind: 'end',
      workflowId,
      status: status.name,
      ...(outcome === undefined ? {} : { outcome }),
      ...(cause === undefined ? {} : { cause }),
    });
  }
  return { runners, violations };
}
