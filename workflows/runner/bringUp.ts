/** From nothing to a runner that is online: provisioning, the pod's way up, registration. */
import { sleep } from '@temporalio/workflow';
import { defined } from '../../core/domain/omitUndefined.ts';
import { FAILURE_TYPES, type Found, type Provisioned } from '../../core/activities/index.ts';
import { callUnless, ciCalls, clusterCalls, type Called } from '../shared/activityProxies.ts';
import { awaitClaims } from './claims.ts';
import { decideComingUp } from './startupDecision.ts';
import type { RunnerCause } from '../../core/contract/index.ts';
import { formatDuration } from '../../core/domain/duration.ts';
import type { AttemptFailure } from './carriedState.ts';
import type { RunnerLife } from './state.ts';
import { awaitEnd, awaitPod, see } from './podWaits.ts';
import { memoOfSet } from './notifySet.ts';
import { tellJobOfPod } from './notifyJob.ts';

/** Failure types of activities (activities/shared/failures.ts) that have a cause of their own. */
const CAUSES: Readonly<Record<string, RunnerCause>> = {
  QuotaExceeded: 'quota_exceeded',
  CredentialsRefused: 'credentials',
  UnknownCredential: 'credentials',
  CiServerUnavailable: 'ci_server_unreachable',
  RateLimited: 'ci_server_unreachable',
};

/** Failures with which the cluster or the CI server has answered: nothing of what it was asked for is under way. */
const ANSWERED: ReadonlySet<string | undefined> = new Set(
  (
    [
      'overtaken',
      'name_taken',
      'rejected',
      'credentials',
      'unknownCredential',
      'rate_limited',
      'quota_exceeded',
      'invalid',
      'forbidden',
      'wrongPlace',
    ] as const
  ).map((kind) => FAILURE_TYPES[kind]),
);

/** A name has 10 hex digits of its own: more than one that is taken is something else than chance. */
const MAX_NAMES = 3;

/** Brings the runner up. Returns early, without a failure, when it has ended or a cancel came. */
export async function comeUp(life: RunnerLife): Promise<AttemptFailure | undefined> {
  life.enter('Provisioning');
  const failure = await provision(life);
  if (failure !== undefined || life.cancel !== undefined) return failure;
  return await becomeOnline(life);
}

async function provision(life: RunnerLife): Promise<AttemptFailure | undefined> {
  const { spec } = life;
  const withinMs = spec.timeouts.provisioningMs;
  const held = await awaitClaims(life);
  if (held !== undefined)
    return {
      message: `The runner could not be provisioned: ${held} (tried for ${formatDuration(withinMs)})`,
    };
  if (life.cancel !== undefined) return undefined;
  let called: Called<Provisioned>;
  let names = 1;
  do {
    life.waitFor('registration, Secret and pod', Date.now() + withinMs);
    called = await tryToProvision(life, withinMs);
    // Somebody else's runner has the name: nothing of it is ours to use, or to remove.
    if (lastFailure(called) === FAILURE_TYPES.name_taken) life.replaceRunner();
  } while (isToBeginAnew(called, names++) && life.cancel === undefined);
  const { pod, runnerId } =
    called.kind === 'done' ? called.value : await findMade(life, isInDoubt(called));
  const { runner } = life;
  if (runnerId !== undefined) runner.id = runnerId;
  if (pod !== undefined) {
    runner.pod = pod;
    see(life, pod);
    const lost = life.replaced.at(-1);
    if (lost?.replacedBy === '') lost.replacedBy = life.runnerName;
    awaitEnd(life);
    void tellJobOfPod(life);
  }
  if (called.kind === 'failed') {
    const cause = CAUSES[called.type];
    const tried = called.timedOut ? ` (tried for ${formatDuration(withinMs)})` : '';
    const message = `The runner could not be provisioned: ${called.message}${tried}`;
    return { message, ...defined({ cause }) };
  }
  return undefined;
}

function lastFailure(called: Called<Provisioned>): string | undefined {
  return called.kind === 'failed'
    ? called.type
    : called.kind === 'interrupted'
      ? called.lastFailure
      : undefined;
}

/** One that has not had its turn has not failed: thousands may be before it, at the pace that the CI server allows. */
function isToBeginAnew(called: Called<Provisioned>, names: number): boolean {
  return (
    called.kind === 'failed' &&
    (called.untried || (called.type === FAILURE_TYPES.name_taken && names < MAX_NAMES))
  );
}

/** May a try of it still create something? Not where it was never begun, or has left off with an answer. */
function isInDoubt(called: Exclude<Called<Provisioned>, { kind: 'done' }>): boolean {
  if (called.kind === 'failed' && called.timedOut) return !called.untried;
  return !ANSWERED.has(lastFailure(called));
}

/**
 * What an interrupted provisioning has made. While somebody may still create (a worker that was cut off, a request that is carried out late)
 * finding nothing says nothing: it is looked for again when nothing can come any more.
 */
async function findMade(life: RunnerLife, inDoubt: boolean): Promise<Found> {
  const found = await findProvisioned(life);
  if (!inDoubt || found.pod !== undefined) return found;
  const { lateCreationMs } = life.spec.intervals;
  life.waitFor('what the interrupted provisioning may still make', Date.now() + lateCreationMs);
  await sleep(lateCreationMs, {
    summary: 'until the interrupted provisioning can make nothing more',
  });
  return await findProvisioned(life);
}

async function tryToProvision(life: RunnerLife, withinMs: number): Promise<Called<Provisioned>> {
  const { spec, runner } = life;
  const { podUnscheduledMs, podPendingMs } = spec.timeouts;
  const input = {
    place: spec.place,
    runnerName: life.runnerName,
    pod: {
      identity: runner.identity,
      ...spec.pod,
      ...defined({ tellsBusy: memoOfSet().tellsBusy }),
    },
    credentialsRetryMs: spec.intervals.credentialsRetryMs,
    dueWithinMs: Math.min(podUnscheduledMs, podPendingMs),
  };
  return await callUnless(
    () => life.cancel !== undefined,
    async () => {
      if (spec.scope === undefined)
        return await clusterCalls({ summary: 'create the pod', withinMs }).provision(input);
      const registration = {
        scope: spec.scope,
        labels: spec.labels,
        group: spec.runnerGroup,
        ephemeral: spec.ephemeral,
        mode: spec.registrationMode,
        disableUpdate: spec.disableUpdate,
      };
      const calls = ciCalls(spec.credential, spec.scope, 'provision', {
        summary: 'register the runner, create its pod',
        withinMs,
      });
      return await calls.provision({
        ...input,
        ciServer: { credential: spec.credential, registration },
      });
    },
  );
}

async function findProvisioned({ spec, runner }: RunnerLife): Promise<Found> {
  const input = {
    place: spec.place,
    identity: runner.identity,
    registered: spec.scope !== undefined,
    ...defined({ namespace: spec.pod.namespace }),
  };
  return await clusterCalls({
    summary: 'what did the interrupted provisioning leave?',
  }).findProvisioned(input);
}

async function becomeOnline(life: RunnerLife): Promise<AttemptFailure | undefined> {
  const { spec, runner } = life;
  const createdAt = Date.now();
  while (life.cancel === undefined && runner.pod !== undefined) {
    const step = decideComingUp(runner.pod, Date.now() - createdAt, Date.now(), spec.timeouts);
    switch (step.kind) {
      case 'ended':
        runner.ended = runner.pod;
        return undefined;
      case 'online':
        isOnline(life);
        return undefined;
      case 'running':
        if (spec.scope !== undefined) return await register(life);
        isOnline(life);
        return undefined;
      case 'failed':
        return { cause: step.cause, message: `The runner did not come up: ${step.message}.` };
      case 'wait':
        if (runner.pod.startedAt !== undefined && spec.scope !== undefined)
          life.enter('Registering');
        life.waitFor(step.why, Date.now() + step.forMs);
        await awaitPod(life, 'online', step.forMs);
    }
  }
  return undefined;
}

function isOnline(life: RunnerLife): void {
  life.runner.online = true;
  if (life.spec.scope === undefined) life.commandRuns();
}

/** Asks the CI server until the runner is online there, its deadline is out, or something better is known. */
async function register(life: RunnerLife): Promise<AttemptFailure | undefined> {
  const { spec, runner } = life;
  const withinMs = spec.timeouts.registrationMs;
  life.enter('Registering');
  life.waitFor('runner to come online', Date.now() + withinMs);
  const { scope } = life;
  const calls = ciCalls(spec.credential, scope, 'provision', {
    summary: 'wait until the runner is online',
    withinMs,
  });
  const called = await callUnless(
    () => runner.ended !== undefined || life.cancel !== undefined || life.sawJob,
    async () =>
      await calls.lookUpRunner({
        scope,
        credential: spec.credential,
        runner: life.registration,
        intervalMs: spec.intervals.onlineLookupMs,
        credentialsRetryMs: spec.intervals.credentialsRetryMs,
      }),
  );
  if (called.kind === 'done') {
    runner.online = true;
    runner.id = called.value.runnerId;
  } else if (called.kind === 'failed' && !life.sawJob && runner.ended === undefined) {
    const cause = CAUSES[called.type] ?? 'never_registered';
    return {
      cause,
      message: `The runner did not come online within ${formatDuration(withinMs)}: ${called.message}`,
    };
  }
  return undefined;
}
