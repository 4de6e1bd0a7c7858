import { ApplicationFailure, CancelledFailure, CancellationScope, condition, setHandler, workflowInfo } from '@temporalio/workflow';
import { clean, readCancelRequest } from '../../core/domain/cancellation.ts';
import { admission, callUnless, clusterCalls } from '../calls.ts';
import { awaitEnd, comeUp } from './comeUp.ts';
import { cancelSignal, ciEventSignal, drainUpdate, extendDeadlineUpdate, podStateSignal, statusQuery, type RunnerInput, type RunnerResult } from '../../core/contract/index.ts';
import { formatDuration, parseDuration } from '../../core/domain/duration.ts';
import { decideEnding, type EndDecision, type EndFacts } from './verdict.ts';
import { RunnerLife, type CarriedLife } from './life.ts';
import { serve } from './serve.ts';
import { tellSetEnded, tellSetOnline } from './tellSet.ts';
import { tearDown } from './tearDown.ts';
import { unregister, type Unregistered } from './unregister.ts';

/** A runner lost within this long of its start counts as short-lived: the next one waits a little longer. */
const SHORT_LIVED_MS = 10 * 60_000;

/**
 * One self-hosted CI runner's whole life: register, run in a pod, unregister, tear down. Ends with a verdict ({@link RunnerResult});
 * Cancelled only after plain cancellation; Failed only for invalid input and defects.
 * @param input - checked in the first step, against a worker's config
 * @param carried - state of the run before, when this one continues it
 * @throws ApplicationFailure `InvalidInput` (non-retryable), naming every bad field
 */
export async function runner(input: RunnerInput, carried?: CarriedLife): Promise<RunnerResult> {
  const { workflowId, firstExecutionRunId } = workflowInfo();
  const spec = carried?.spec ?? (await admission().admitRunner({ input, workflowId, firstRunId: firstExecutionRunId }));
  const life = new RunnerLife(spec, workflowId, firstExecutionRunId, carried);
  listen(life);
  // Whatever ends this life, unregistering and tearing down are not up for cancellation; a plain cancel is a request like the others.
  void CancellationScope.current().cancelRequested.catch(() => {
    life.plainlyCancelled = true;
    life.requestCancel({ mode: 'stop', reason: 'the workflow was cancelled', by: 'cancelled' });
  });
  const result = await CancellationScope.nonCancellable(async () => await live(life, input, carried !== undefined));
  if (life.plainlyCancelled) throw new CancelledFailure(result.message);
  return result;
}

function listen(life: RunnerLife): void {
  setHandler(cancelSignal, (body) => life.requestCancel(readCancelRequest(body)), { description: 'End this runner. Body: "reason" or {reason, mode: "drain"|"stop"|"force"}' });
  setHandler(ciEventSignal, (event) => life.onCiEvent(event), { description: "A job event from the CI server's webhook (a hint)" });
  setHandler(podStateSignal, (event) => life.onPodState(event), { description: 'idle or busy, as the pod itself says (a hint)' });
  setHandler(statusQuery, () => life.status(), { description: 'Phase, pod, node, job, and what it waits for' });
  setHandler(
    drainUpdate,
    (body?: { reason?: string }) => {
      life.requestCancel({ mode: 'drain', reason: clean(body?.reason ?? ''), by: 'drain' });
      return { accepted: true as const, phase: life.phase };
    },
    {
      description: 'Retire this runner in good order: its job may finish',
      validator: (_body?: { reason?: string }) => {
        if (life.phase === 'TearingDown' || life.phase === 'Gone') throw new Error(`the runner is ${life.phase} already`);
      },
    },
  );
  setHandler(
    extendDeadlineUpdate,
    ({ by }) => {
      life.runner.jobDeadline = (life.runner.jobDeadline ?? Date.now()) + (parseDuration(by) ?? 0);
      return { jobDeadline: new Date(life.runner.jobDeadline).toISOString() };
    },
    {
      description: "Extend the running job's deadline. Body: {by: \"30m\"}",
      validator: (body) => {
        if ((parseDuration(String(body?.by)) ?? 0) <= 0) throw new Error('by: is not a duration; write for example "30m"');
        if (life.spec.pod.supervision.timeoutMs !== undefined && life.runner.pod?.online !== undefined) throw new Error('the timeout of a plain command is kept in its pod, and cannot be extended');
        if (life.runner.jobDeadline === undefined) throw new Error('the runner has no job whose deadline could be extended');
      },
    },
  );
}

async function live(life: RunnerLife, input: RunnerInput, continued: boolean): Promise<RunnerResult> {
  let resume = continued;
  for (;;) {
    const startedAt = Date.now();
    const failure = resume ? undefined : await comeUp(life);
    if (resume) awaitEnd(life);
    resume = false;
    // Nobody waits for the news to arrive: jobs do not either.
    if (life.runner.online) void tellSetOnline(life);
    if (failure === undefined && life.cancel === undefined) await serve(life, input);
    const unregistered = await unregister(life);
    if (!unregistered.tornDown) await tearDown(life);
    life.countLoss(Date.now() - startedAt < SHORT_LIVED_MS);
    const decision = decideEnding(endFacts(life, failure, unregistered));
    if (decision.kind === 'end') return await finish(life, decision, unregistered);
    await replaceAfter(life, decision);
    if (life.cancel !== undefined) return await finish(life, decideEnding(endFacts(life, failure, unregistered)), unregistered);
  }
}

function endFacts(life: RunnerLife, failure: EndFacts['failure'], { removal, stoppedByUs, removedAlive }: Unregistered): EndFacts {
  const { runner, spec, cancel } = life;
  // A runner that came online after its deadline and ran a job was not lost to it.
  const failed = failure !== undefined && !(failure.cause === 'never_registered' && runner.sawJob);
  return {
    ...(cancel === undefined ? {} : { cancel }),
    ...(failed ? { failure } : {}),
    ...(runner.pod === undefined ? {} : { pod: runner.pod }),
    ...(removal === undefined ? {} : { removal }),
    stoppedByUs,
    removedAlive,
    ephemeral: spec.ephemeral,
    plainCommand: spec.scope === undefined,
    checkpoints: spec.pod.supervision.onTerm === 'checkpoint',
    started: runner.pod?.startedAt !== undefined,
    wasOnline: runner.online,
    sawJob: runner.sawJob,
    ownBusyAtEnd: life.ownSignal() === 'busy',
    jobInterrupted: runner.jobFailedAt !== undefined && runner.jobFailedAt >= Date.parse(runner.pod?.toldToGoAt ?? ''),
    onEviction: spec.onEviction,
    neverStartedInARow: life.neverStartedInARow,
    shortLivedInARow: life.shortLivedInARow,
  };
}

async function replaceAfter(life: RunnerLife, { cause, afterMs, message }: Extract<EndDecision, { kind: 'replace' }>): Promise<void> {
  const lost = life.runnerName;
  life.waitFor(message, Date.now() + afterMs);
  if (afterMs > 0) await condition(() => life.cancel !== undefined, afterMs, { summary: `${formatDuration(afterMs)} before another runner takes its place` });
  await awaitClaims(life);
  if (life.cancel !== undefined) return;
  life.replaceRunner();
  life.replaced.push({ runnerName: lost, cause, replacedBy: '' });
}

/** Nobody mounts a claim while a runner that nobody saw end may still write to it. */
async function awaitClaims(life: RunnerLife): Promise<void> {
  const { pod } = life.runner;
  const node = pod?.exit === undefined && pod?.startedAt !== undefined ? pod.node : undefined;
  if (node === undefined || life.spec.pod.volumeClaims.length === 0) return;
  life.waitFor(`node ${node} to be Ready again, gone, or tainted out-of-service, before its claims are mounted elsewhere`);
  await callUnless(
    () => life.cancel !== undefined,
    async () => await clusterCalls({ summary: `nothing writes from node ${node} any more?` }).awaitNodeReleased({ node }),
  );
}

async function finish(life: RunnerLife, decision: EndDecision, { deregistration }: Partial<Unregistered>): Promise<RunnerResult> {
  if (decision.kind !== 'end') throw ApplicationFailure.nonRetryable('A cancelled life cannot be replaced', 'Defect');
  const { runner, spec } = life;
  const claims = spec.pod.volumeClaims.filter(({ claim }) => claim === undefined);
  if (claims.length > 0) {
    const place = spec.pod.namespace === undefined ? {} : { namespace: spec.pod.namespace };
    await clusterCalls({ summary: 'delete the claims' }).deleteClaims({ identity: runner.identity, claims, ...place });
  }
  life.enter('Gone', { outcome: decision.outcome, ...(decision.cause === undefined ? {} : { cause: decision.cause }) });
  const result: RunnerResult = {
    outcome: decision.outcome,
    ...(decision.cause === undefined ? {} : { cause: decision.cause }),
    message: decision.message,
    runnerName: life.runnerName,
    ...(runner.id === undefined ? {} : { runnerId: runner.id }),
    ...(runner.pod?.exit === undefined ? {} : { exitCode: runner.pod.exit.code }),
    attempt: runner.identity.attempt,
    unregisterAttempts: life.unregisterAttempts,
    phases: life.phases,
    replaced: life.replaced,
    ...(deregistration === undefined ? {} : { deregistration }),
  };
  await tellSetEnded(life, result);
  return result;
}
