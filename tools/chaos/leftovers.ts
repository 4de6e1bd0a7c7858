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

/** Of one run of a workflow; beyond it, Temporal would end it at some time. */
const MAX_EVENTS = 10_000;
const CALL_MS = 5_000;
/** Waits on purpose, which a fault's end does not end: as long as something may still be created (`intervals.lateCreationWindow`), and a minute after each refusal. */
const ON_PURPOSE = [
  'objects that the interrupted provisioning may still create',
  'the cluster to accept a deletion',
];

/** Who is not at rest: idle in its set, which is as large as it shall be. */
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
  const lives = new Set([...known, ...users.standaloneRunners()]);
  for await (const { workflowId } of client.workflow.list({ query: runningRunnersQuery(name) }))
    lives.add(workflowId);
  for (const life of lives) {
    if (idle.has(life)) continue;
    const seen = await statusOf(world, life);
    if (seen !== undefined && !isOnPurpose(seen)) obstacles.push({ what: told(life, seen), life });
  }
  return obstacles;
}

/** Who neither waits for a job nor has one: it comes up, or goes. Not one whose pod the cluster itself has not started yet, or still takes away. */
export async function activeRunners(world: ChaosEnvironment): Promise<UnmetCondition[]> {
  const { client, name, observer } = world;
  const excused = new Set(
    observer
      .openJobs()
      .flatMap(({ runner_name: runner, status }) =>
        runner === null || status === 'queued' ? [] : [workflowOfRunner(runner)],
      ),
  );
  for (const { life, started, stopping } of observer.pods())
    if (!started || stopping) excused.add(life);
  const lives: string[] = [];
  for await (const { workflowId, typedSearchAttributes: found } of client.workflow.list({
    query: runningRunnersQuery(name),
  })) {
    if (!atRest(found.get(SEARCH_ATTRIBUTES.phase)) && !excused.has(workflowId))
      lives.push(workflowId);
  }
  const seen = await Promise.all(
    lives.map(async (life) => ({ life, status: await statusOf(world, life) })),
  );
  return seen.flatMap(({ life, status }) =>
    status === undefined || atRest(status.phase) || isOnPurpose(status)
      ? []
      : [{ what: told(life, status), life }],
  );
}

const isOnPurpose = ({ waitingFor }: RunnerStatus): boolean =>
  ON_PURPOSE.some((wait) => waitingFor?.startsWith(wait));

const atRest = (phase: string | undefined): boolean => phase === 'Idle' || phase === 'Busy';

const told = (life: string, { phase, waitingFor }: RunnerStatus): string =>
  `${life} is ${phase}${waitingFor === undefined ? '' : `, waits for ${waitingFor}`}`;

/** `undefined`: it has ended. */
async function statusOf(
  { client }: ChaosEnvironment,
  life: string,
): Promise<RunnerStatus | undefined> {
  const handle = client.workflow.getHandle(life);
  return await client.withDeadline(Date.now() + CALL_MS, async () =>
    (await handle.describe()).status.name === 'RUNNING'
      ? await handle.query(statusQuery)
      : undefined,
  );
}

/** What all lives have left: nothing, when all is well. */
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
      life: runnerOfPod(metadata?.name ?? ''),
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
      ...(type === RUNNER_WORKFLOW ? { life: workflowId } : {}),
    });
  }
  return left;
}

/** Writes down how every life ended, and finds histories that grew too long. @returns how many lives there were */
export async function recordEnds({
  client,
  name,
  observer,
}: ChaosEnvironment): Promise<{ lives: number; violations: Violation[] }> {
  const violations: Violation[] = [];
  let lives = 0;
  for await (const {
    workflowId: life,
    type,
    status,
    historyLength,
    typedSearchAttributes: found,
  } of client.workflow.list({ query: `TaskQueue = '${name}'` })) {
    if (historyLength > MAX_EVENTS)
      violations.push({
        rule: 'histories stay short',
        message: `${type} ${life} has ${historyLength} events in one run`,
        life,
      });
    if (status.name === 'CONTINUED_AS_NEW' || status.name === 'RUNNING') continue;
    if (type !== RUNNER_WORKFLOW) {
      // A sweep that cannot see everything touches nothing, and says so by failing.
      if (status.name !== 'COMPLETED' && type !== SWEEP_WORKFLOW)
        violations.push({
          rule: 'every workflow completes',
          message: `${type} ${life} ended as ${status.name}`,
          life,
        });
      continue;
    }
    lives += 1;
    const outcome = found.get(SEARCH_ATTRIBUTES.outcome);
    const cause = found.get(SEARCH_ATTRIBUTES.cause);
    observer.add({
      kind: 'end',
      life,
      status: status.name,
      ...(outcome === undefined ? {} : { outcome }),
      ...(cause === undefined ? {} : { cause }),
    });
  }
  return { lives, violations };
}
