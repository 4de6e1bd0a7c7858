/** From nothing to a runner that is online: provisioning, the pod's way up, registration. */
import { condition } from '@temporalio/workflow';
import type { Provisioned } from '../../core/calls/index.ts';
import { callUnless, ciCalls, clusterCalls, podWaitCalls, settle, type Called } from '../calls.ts';
import { decideComingUp } from './onlineDecision.ts';
import type { RunnerCause } from '../../core/contract/index.ts';
import { formatDuration } from '../../core/domain/duration.ts';
import type { EndFacts } from './verdict.ts';
import type { RunnerLife } from './life.ts';
import { podOf } from '../../core/domain/podRequest.ts';
import { isBusy, waitActivityId, type PodCondition } from '../../core/domain/podConditions.ts';
import type { PodView } from '../../core/domain/pod.ts';

type Failure = NonNullable<EndFacts['failure']>;

/** Failure types of activities (activities/failures.ts) that have a cause of their own. */
const CAUSES: Readonly<Record<string, RunnerCause>> = {
  QuotaExceeded: 'quota_exceeded',
  CredentialsRefused: 'credentials',
  UnknownCredential: 'credentials',
  CiServerUnavailable: 'ci_server_unreachable',
  RateLimited: 'ci_server_unreachable',
};

/** Brings the runner up. Returns early, without a failure, when it has ended or a cancel came. */
export async function comeUp(life: RunnerLife): Promise<Failure | undefined> {
  life.enter('Provisioning');
  const failure = await provision(life);
  if (failure !== undefined || life.cancel !== undefined) return failure;
  return await becomeOnline(life);
}

async function provision(life: RunnerLife): Promise<Failure | undefined> {
  const { spec, runner } = life;
  const withinMs = spec.timeouts.provisioningMs;
  let called: Called<Provisioned>;
  // One that has not had its turn has not failed: thousands may be before it, at the pace that the CI server allows.
  do {
    life.waitFor('registration, Secret and pod', Date.now() + withinMs);
    called = await tryToProvision(life, withinMs);
  } while (called.kind === 'failed' && called.untried && life.cancel === undefined);
  const provisioned = called.kind === 'done' ? called.value : await findProvisioned(life);
  if (provisioned !== null) {
    runner.pod = provisioned.pod;
    see(life, provisioned.pod);
    if (provisioned.runnerId !== undefined) runner.id = provisioned.runnerId;
    const lost = life.replaced.at(-1);
    if (lost?.replacedBy === '') lost.replacedBy = life.runnerName;
    awaitEnd(life);
  }
  if (called.kind === 'failed') {
    const cause = CAUSES[called.type];
    const tried = called.timedOut ? ` (tried for ${formatDuration(withinMs)})` : '';
    const message = `The runner could not be provisioned: ${called.message}${tried}`;
    return cause === undefined ? { message } : { cause, message };
  }
  return undefined;
}

async function tryToProvision(life: RunnerLife, withinMs: number): Promise<Called<Provisioned>> {
  const { spec, runner } = life;
  const { podUnscheduledMs, podPendingMs } = spec.timeouts;
  const input = {
    runnerName: life.runnerName,
    pod: { identity: runner.identity, ...podOf(spec) },
    credentialsRetryMs: spec.intervals.credentialsRetryMs,
    onlineWithinMs: Math.min(spec.intervals.heldBackMs, podUnscheduledMs, podPendingMs),
  };
  return await callUnless(
    () => life.cancel !== undefined,
    async () => {
      if (spec.scope === undefined) return await clusterCalls({ summary: 'create the pod', withinMs }).provision(input);
      const registration = { scope: spec.scope, labels: spec.labels, groupId: spec.runnerGroupId, ephemeral: spec.ephemeral, mode: spec.registrationMode };
      const calls = ciCalls(spec.credential, spec.scope, 'provision', { summary: 'register the runner, create its pod', withinMs });
      return await calls.provision({ ...input, ciServer: { credential: spec.credential, registration } });
    },
  );
}

async function findProvisioned({ spec, runner }: RunnerLife): Promise<Provisioned | null> {
  const place = spec.pod.namespace === undefined ? {} : { namespace: spec.pod.namespace };
  const input = { identity: runner.identity, ...place, registered: spec.scope !== undefined };
  return await clusterCalls({ summary: 'what did the interrupted provisioning leave?' }).findProvisioned(input);
}

async function becomeOnline(life: RunnerLife): Promise<Failure | undefined> {
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
        if (runner.pod.startedAt !== undefined && spec.scope !== undefined) life.enter('Registering');
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
async function register(life: RunnerLife): Promise<Failure | undefined> {
  const { spec, runner } = life;
  const withinMs = spec.timeouts.registrationMs;
  life.enter('Registering');
  life.waitFor('runner to come online', Date.now() + withinMs);
  const { scope } = life;
  const calls = ciCalls(spec.credential, scope, 'provision', { summary: 'wait until the runner is online', withinMs });
  const called = await callUnless(
    () => runner.ended !== undefined || life.cancel !== undefined || runner.sawJob,
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
  } else if (called.kind === 'failed' && !runner.sawJob && runner.ended === undefined) {
    const cause = CAUSES[called.type] ?? 'never_registered';
    return { cause, message: `The runner did not come online within ${formatDuration(withinMs)}: ${called.message}` };
  }
  return undefined;
}

/**
 * Waits for a condition of the runner's pod, and keeps what was seen. Interrupted by a cancel: the workflow loses interest, the wait
 * stays (the server refuses the same activity id while a cancelled one is pending).
 */
export async function awaitPod(life: RunnerLife, until: PodCondition, withinMs: number): Promise<void> {
  const { runner } = life;
  if (runner.pod === undefined) return;
  const cancelAtStart = life.cancel;
  const input = { workflowId: life.workflowId, pod: podRef(runner.pod) };
  const options = { summary: `pod to be ${until}`, withinMs };
  const wait = settle(podWaitCalls(waitActivityId(until, runner.pod.name), life.spec.intervals.resyncMs, options).awaitPod({ ...input, until }));
  let answer: Awaited<typeof wait> | undefined;
  void wait.then((called) => (answer = called));
  await condition(() => answer !== undefined || life.cancel !== cancelAtStart);
  if (answer === undefined) return;
  if (answer.kind === 'done') see(life, answer.value);
  else see(life, await clusterCalls({ summary: 'look at the pod' }).observePod(input));
}

/** Starts the one wait for the runner's end; its answer lies in `runner.ended` whenever it comes. */
export function awaitEnd(life: RunnerLife): void {
  const { runner } = life;
  if (runner.pod === undefined) return;
  const input = { workflowId: life.workflowId, pod: podRef(runner.pod) };
  const calls = podWaitCalls(waitActivityId('ended', runner.pod.name), life.spec.intervals.resyncMs, { summary: 'runner to end' });
  void settle(calls.awaitPod({ ...input, until: 'ended' })).then((called) => {
    if (called.kind !== 'done') return;
    if (see(life, called.value)) runner.ended = called.value;
  });
}

/** Takes in what was seen of the pod. A view of another pod of the same name (another UID) changes nothing. */
export function see(life: RunnerLife, pod: PodView): boolean {
  const { runner } = life;
  const last = runner.pod;
  // A pod that vanished while nobody watched is reported without the UID that nobody could read any more.
  if (last === undefined || (pod.uid !== last.uid && !(pod.gone && pod.uid === ''))) return false;
  // What an ended or a vanished pod was last known to be still holds: our own deletion must not pass for somebody else's.
  if (last.ended) runner.pod = { ...last, gone: last.gone || pod.gone };
  else runner.pod = pod.gone && pod.startedAt === undefined ? { ...last, gone: true, ended: true } : pod;
  const busy = isBusy(pod, Date.now());
  if (busy !== undefined && !pod.ended) life.heardPod(busy);
  const job = pod.exit?.record?.job;
  // What the runner itself wrote down at its end beats what was last seen of it.
  if (job === 'none') {
    // Its probes fail in its last moments, too, as those of a busy one do.
    runner.podBusy = false;
    if (runner.job === undefined && !runner.ciBusy) runner.sawJob = false;
  } else if (job !== undefined) Object.assign(runner, { online: true, sawJob: true, podBusy: job !== 'done' });
  return true;
}

export function podRef(pod: PodView): { name: string; uid: string; namespace?: string } {
  return pod.namespace === undefined ? { name: pod.name, uid: pod.uid } : { name: pod.name, uid: pod.uid, namespace: pod.namespace };
}
