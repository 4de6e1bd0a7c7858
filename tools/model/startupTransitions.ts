/** The start of a runner: the activities and waits of workflows/runner/bringUp.ts, one by one. */
import { isCommand, isStatic, lacksSupervisor, type State } from './state.ts';
import { step, type Transition } from './transition.ts';
import {
  observePod,
  recordDeadlineJob,
  runWorkflow,
  unregister,
  withUpdate,
} from './workflowTask.ts';
import type { WorkflowModel } from './workflowModel.ts';

/** The objects that a provisioning creates, in its order. */
const CREATED = ['nothing', 'registration', 'Secret', 'pod'] as const;

/** A fault of several waits: the worker that executes them has no previous view of the pod. */
export const BY_NEW_WORKER = '... by a worker that has just started';

/** Returns the state after the next object was created. */
function createNext(s: State): State {
  const created = CREATED[CREATED.indexOf(s.created) + 1] ?? 'pod';
  // A static runner registers itself, later. A command does not register.
  if (created === 'registration')
    return {
      ...s,
      created,
      ...(isStatic(s) || isCommand(s) ? {} : { registration: 'registered', justRegistered: true }),
    };
  return created === 'pod' ? { ...s, created, pod: 'pending' } : { ...s, created };
}

/** Removes the registration by its id if it has no Secret, so that no pod can use it. */
const removeUnused = (s: State): State =>
  s.created === 'registration' && s.registration === 'registered'
    ? { ...s, registration: 'removed' }
    : s;

const PROVISIONING: readonly Transition[] = [
  step(
    'fair',
    'the worker creates the next of registration, Secret and pod',
    'provisioning',
    (s) => (s.created === 'pod' ? undefined : createNext(s)),
  ),
  step('fair', 'the provisioning completes', 'provisioning', (s, workflow) =>
    s.created === 'pod'
      ? runWorkflow(
          { ...observePod(s, workflow, 'provisioned', 'warm'), stage: 'starting' },
          workflow,
        )
      : undefined,
  ),
  // The worker leaves no registration without a Secret, and does not fail after it created the pod.
  step('fault', 'the provisioning fails without a retry', 'provisioning', (s) =>
    s.created === 'pod'
      ? undefined
      : { ...removeUnused(s), stage: 'finding leftovers', failure: 'provisioning' },
  ),
  step('timeout', 'the provisioning times out', 'provisioning', (s) => ({
    ...s,
    stage: 'finding leftovers',
    failure: 'provisioning',
    staleProvisioning: s.created !== 'pod',
  })),
  step('fair', 'the provisioning is cancelled', 'provisioning', (s, workflow) =>
    workflow.knowledge(s).cancel === undefined
      ? undefined
      : { ...removeUnused(s), stage: 'finding leftovers' },
  ),
  step(
    'fault',
    'the provisioning is cancelled without a response of its worker',
    'provisioning',
    (s, workflow) =>
      workflow.knowledge(s).cancel === undefined || s.created === 'pod'
        ? undefined
        : { ...s, stage: 'finding leftovers', staleProvisioning: true },
  ),
  {
    kind: 'optional',
    name: 'the worker of the stale provisioning creates the next object',
    next: (s) => {
      if (!s.staleProvisioning) return undefined;
      const next = createNext(s);
      return { ...next, staleProvisioning: next.created !== 'pod' };
    },
  },
  // While a stale provisioning can still create objects, the workflow searches again after
  // `intervals.lateCreationWindow`.
  step('fair', 'leftovers of the provisioning are found', 'finding leftovers', findLeftovers),
];

function findLeftovers(s: State, workflow: WorkflowModel): State {
  const finished = s.staleProvisioning
    ? { ...s, staleProvisioning: false, justRegistered: false }
    : s;
  const { created, failure } = finished;
  const known =
    isStatic(finished) || isCommand(finished) || created === 'nothing' || created === 'registration'
      ? finished
      : withUpdate(finished, workflow, { kind: 'idFound' });
  const isInDoubt = failure === 'none' || s.staleProvisioning || created === 'pod';
  const withoutPod = isInDoubt ? withUpdate(known, workflow, { kind: 'podInDoubt' }) : known;
  const found =
    created === 'pod' && finished.pod !== 'gone'
      ? observePod(known, workflow, 'provisioned', 'cold')
      : withoutPod;
  return failure === 'none'
    ? runWorkflow({ ...found, stage: 'starting' }, workflow)
    : unregister(found, workflow);
}

/** Whether the wait for an online pod returns. */
const hasStartupResult = (s: State): boolean =>
  s.pod === 'ended' ||
  s.pod === 'gone' ||
  s.published !== 'down' ||
  (s.pod === 'running' && lacksSupervisor(s)) ||
  s.problem === 'image for 30 s' ||
  s.problem === 'image name';

const WAITING_FOR_POD: readonly Transition[] = [
  ...(['warm', 'cold'] as const).map((cache) =>
    step(
      cache === 'warm' ? 'fair' : 'fault',
      cache === 'warm' ? 'the wait for the pod to be online returns' : BY_NEW_WORKER,
      'starting',
      (s, workflow) => {
        if (!hasStartupResult(s)) return undefined;
        const observed = observePod(s, workflow, 'observed', cache);
        return runWorkflow(recordDeadlineJob(s, observed, workflow), workflow);
      },
    ),
  ),
  step(
    'fault',
    'the wait for the pod to be online returns an outdated view',
    'starting',
    (s, workflow) => {
      const { watcherView } = s;
      if (s.pod !== 'running' || lacksSupervisor(s) || isCommand(s)) return undefined;
      if (watcherView === 'nothing' || watcherView === 'down' || watcherView === s.published)
        return undefined;
      const view = workflow.view({ ...s, published: watcherView }, 'warm');
      const observed = withUpdate(s, workflow, { kind: 'observed', view });
      return runWorkflow(recordDeadlineJob(s, observed, workflow), workflow);
    },
  ),
  step(
    'timeout',
    'a deadline of the start has passed: the pod is read',
    'starting',
    (s, workflow) => {
      const podAge = s.podAge === 'new' ? ('5 m' as const) : ('10 m' as const);
      const later =
        workflow.knowledge(s).runner.pod?.startedAt === undefined
          ? { podAge }
          : { pastRegistrationDeadline: true };
      return runWorkflow(observePod({ ...s, ...later }, workflow, 'observed', 'warm'), workflow);
    },
  ),
];

const CHECKING_ONLINE: readonly Transition[] = [
  step('fair', 'the CI server shows the runner online', 'checking online', (s, workflow) =>
    s.online && s.registration === 'registered'
      ? runWorkflow(
          { ...withUpdate(s, workflow, { kind: 'onlineAtServer' }), stage: 'serving' },
          workflow,
        )
      : undefined,
  ),
  step(
    'timeout',
    'the CI server has not shown the runner online in time',
    'checking online',
    (s, workflow) =>
      unregister(
        {
          ...s,
          failure: 'never_registered',
          pastRegistrationDeadline: s.deletedBy === 'none' || s.pastRegistrationDeadline,
        },
        workflow,
      ),
  ),
];

/** Transitions from the provisioning until the runner is online. */
export const STARTUP_TRANSITIONS: readonly Transition[] = [
  ...PROVISIONING,
  ...WAITING_FOR_POD,
  ...CHECKING_ONLINE,
];
