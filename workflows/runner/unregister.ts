/** From "this runner shall go, or has ended" to "unregistered, and nothing of it is left". Drives the decision table of unregistration.ts. */
import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import { ParentClosePolicy, condition, startChild } from '@temporalio/workflow';
import type { Cancellation } from '../../core/domain/cancellation.ts';
import { callUnless, ciCalls, clusterCalls } from '../calls.ts';
import { podRef, see } from './comeUp.ts';
import { DEREGISTRATION_WORKFLOW, type DeregistrationInput } from '../../core/contract/index.ts';
import { TERMINATION_OVERDUE_MS } from '../../core/domain/podConditions.ts';
import type { RunnerLife } from './life.ts';
import { tearDown, tearDownInput } from './tearDown.ts';
import { decideUnregistration, type UnregistrationAction, type UnregistrationFacts } from './unregisterTable.ts';
import type { StopReason } from '../../core/domain/pod.ts';
import type { RemovalAnswer } from '../../core/domain/ciServer.ts';

/** How the unregistration of one runner went. */
export interface Unregistered {
  /** `gone`: absent, and perhaps by an earlier try of ours. */
  readonly removal?: RemovalAnswer | 'gone';
  readonly stoppedByUs: boolean;
  /** The registration was removed under a runner that lived: one without a job ends then by itself, with whatever status. */
  readonly removedAlive: boolean;
  readonly tornDown: boolean;
  readonly deregistration?: string;
}

/** What the supervisor is told when this workflow stops its pod. */
const STOP_REASON: Readonly<Record<Cancellation['by'], StopReason>> = {
  cancelled: 'cancelled',
  superseded: 'superseded',
  run_timeout: 'timeout',
  idle_timeout: 'drained',
  drain: 'drained',
};

/**
 * A pod that is deleted with grace 0 is gone from the API server at once, and its kubelet, which never sees a deadline, gives the containers
 * the pod's whole own grace: a forced stop asks for the shortest grace that a kubelet keeps.
 */
const FORCED_GRACE_SECONDS = 1;
/** A kubelet that has not killed the pod by then does not answer. */
const FORCED_OVERDUE_MS = 10_000;

/** How long the CI server is asked for the registration of a runner that may never have had one. */
const UNKNOWN_RUNNER_MS = 2 * 60_000;

/** Unregisters the life's present runner. Ends only when its registration is proven absent or handed on, and its pod may go. */
export async function unregister(life: RunnerLife): Promise<Unregistered> {
  const run = new Unregistration(life);
  for (;;) {
    const facts = run.facts();
    const action = decideUnregistration(facts);
    life.waitFor(action.why);
    const done = await run.carryOut(action, facts);
    if (done !== undefined) return done;
  }
}

class Unregistration {
  readonly #life: RunnerLife;
  #answer: RemovalAnswer | undefined;
  #removal: Unregistered['removal'];
  #stopRequested: 'stop' | 'force' | undefined;
  #provenAt: number | undefined;
  #settled = false;
  #idleConfirmed = false;
  #removedAlive = false;
  /** A removal was asked for while the runner lived, and its answer is not known. */
  #unanswered = false;
  #patienceOver = false;
  #looked = false;
  #tornDown = false;

  constructor(life: RunnerLife) {
    this.#life = life;
    // Nobody had to know a plain command.
    if (life.spec.scope === undefined) this.#provenAt = Date.now();
  }

  facts(): UnregistrationFacts {
    const { runner, cancel, spec } = this.#life;
    const stop = cancel === undefined || cancel.mode === 'drain' ? undefined : cancel.mode;
    const stopRequested = this.#stopRequested === 'force' || (this.#stopRequested === 'stop' && stop !== 'force');
    const exitCode = runner.pod?.exit?.code;
    const startedAt = runner.pod?.startedAt;
    return {
      proven: this.#provenAt !== undefined,
      ephemeral: spec.ephemeral,
      started: startedAt !== undefined,
      ended: runner.pod === undefined || runner.pod.ended || runner.ended !== undefined,
      ...(exitCode === undefined ? {} : { exitCode }),
      sawJob: runner.sawJob,
      toldToGo: runner.pod?.terminating === true || runner.pod?.disruption !== undefined,
      ownSignal: this.#life.ownSignal(),
      heldId: runner.id !== undefined || runner.online,
      registrationOver: startedAt !== undefined && Date.now() >= Date.parse(startedAt) + spec.timeouts.registrationMs,
      ...(this.#answer === undefined ? {} : { answer: this.#answer }),
      ...(stop === undefined ? {} : { stop }),
      patienceOver: this.#patienceOver,
      stopRequested,
      settled: this.#settled,
      idleConfirmed: this.#idleConfirmed && this.#life.ownSignal() === 'idle',
    };
  }

  async carryOut(action: UnregistrationAction, facts: UnregistrationFacts): Promise<Unregistered | undefined> {
    const { intervals } = this.#life.spec;
    switch (action.kind) {
      case 'tearDown':
        if (!facts.ended && !facts.started && !this.#looked) return await this.#look();
        return this.#done();
      case 'handOff':
        return { ...this.#done(), deregistration: await this.#handOff() };
      case 'askRemoval':
        return await this.#askRemoval(facts);
      case 'stopPod':
        return await this.#stopPod(facts.stop ?? 'stop', action.why);
      case 'lookAgain':
        await this.#pause(intervals.absentRecheckMs, facts, action.why);
        this.#answer = undefined;
        return undefined;
      case 'waitEnded':
        return await this.#waitEnded(action, facts);
    }
  }

  /** Does anything hold now that the table must hear of? */
  #changed(facts: UnregistrationFacts): boolean {
    const now = this.facts();
    return now.ended !== facts.ended || now.stop !== facts.stop || now.ownSignal !== facts.ownSignal;
  }

  /** @returns whether something woke it before the time was out, even if that is over by now */
  async #pause(ms: number, facts: UnregistrationFacts, summary: string): Promise<boolean> {
    const woken = await condition(() => this.#changed(facts), ms, { summary });
    if (woken && this.#answer !== 'removed') this.#answer = undefined;
    return woken;
  }

  /** Nothing is torn down on an old view: a container that had not started may have started since, an idle runner may be busy. */
  async #look(): Promise<undefined> {
    const { runner, workflowId } = this.#life;
    this.#looked = true;
    if (runner.pod === undefined) return undefined;
    see(this.#life, await clusterCalls({ summary: 'has the container started?' }).observePod({ workflowId, pod: podRef(runner.pod) }));
    return undefined;
  }

  async #askRemoval(facts: UnregistrationFacts): Promise<Unregistered | undefined> {
    const life = this.#life;
    const { spec, runner } = life;
    life.enter(facts.ended ? 'Unregistering' : 'Draining');
    const retriesBusy = !spec.ephemeral && !facts.ended && facts.stop === undefined;
    const unknown = runner.pod === undefined;
    const summary = retriesBusy ? 'unregister (again while it is busy)' : 'unregister';
    const stopping = facts.stop !== undefined && !facts.ended;
    const called = await callUnless(
      () => this.#changed(facts),
      async () =>
        await ciCalls(spec.credential, life.scope, 'release', { summary, ...(unknown ? { withinMs: UNKNOWN_RUNNER_MS } : {}) }).release({
          scope: life.scope,
          credential: spec.credential,
          runner: life.registration,
          onBusy: retriesBusy ? 'retry' : 'return',
          busyRetryMs: spec.intervals.busyRetryMs,
          credentialsRetryMs: spec.intervals.credentialsRetryMs,
          ...(facts.ended ? { tearDown: tearDownInput(life) } : {}),
        }),
      stopping ? spec.intervals.stopPatienceMs : undefined,
    );
    if (called.kind === 'done') {
      const { answer, retried, attempts, runnerId, pod } = called.value;
      life.unregisterAttempts += attempts;
      if (runnerId !== undefined) runner.id = runnerId;
      this.#tornDown = pod === 'gone';
      if (this.#tornDown) life.pass('TearingDown');
      this.#heard(answer, facts, retried === true);
    } else {
      this.#unanswered ||= !facts.ended;
    }
    if (called.kind === 'failed') {
      if (facts.ended) {
        // The CI server does not say: that must not hold up the end of this life.
        await tearDown(life);
        return { ...this.#done(), tornDown: true, deregistration: await this.#handOff() };
      }
      // No failure is a reason to touch a runner that lives.
      await this.#pause(spec.intervals.credentialsRetryMs, facts, `unregistration failed (${called.type}): again soon`);
    } else if (called.kind === 'interrupted' && !this.#changed(facts)) {
      // Nothing new, and no answer: a stop does not wait any longer for the CI server.
      this.#patienceOver = true;
    }
    return undefined;
  }

  #heard(answer: RemovalAnswer, facts: UnregistrationFacts, retried: boolean): void {
    const { runner } = this.#life;
    const perhapsByUs = answer === 'absent' && (retried || this.#unanswered);
    this.#answer = answer;
    this.#removal = perhapsByUs ? 'gone' : answer;
    // An ephemeral runner removes itself after its job.
    const selfRemoved = facts.ephemeral && facts.sawJob;
    const whileItLived = !facts.ended || this.#unanswered;
    if ((answer === 'removed' && !facts.ended) || (perhapsByUs && whileItLived && !selfRemoved)) this.#removedAlive = true;
    if (answer === 'removed' || (answer === 'absent' && (facts.ended || facts.heldId))) this.#provenAt = Date.now();
    // It came online and took a job after all.
    if (answer === 'busy' && !facts.ended) Object.assign(runner, { online: true, sawJob: true });
  }

  async #stopPod(mode: 'stop' | 'force', why: string, forcedGraceSeconds = FORCED_GRACE_SECONDS): Promise<undefined> {
    const { runner, spec, workflowId, cancel } = this.#life;
    this.#stopRequested = mode;
    this.#answer = undefined;
    if (runner.pod === undefined) return undefined;
    const grace = mode === 'force' ? { gracePeriodSeconds: forcedGraceSeconds } : {};
    const reason = cancel?.by ?? why;
    const stopReason = STOP_REASON[cancel?.by ?? 'cancelled'];
    // Without a word SIGTERM means what `onTerm` says, and counts as a cancellation.
    const announce = runner.pod.online !== undefined && mode !== 'force' && (spec.pod.supervision.onTerm !== 'stop' || stopReason !== 'cancelled') ? { announce: stopReason } : {};
    const calls = clusterCalls({ summary: mode === 'force' ? 'kill the pod' : 'stop the pod gracefully' });
    const state = await calls.stopPod({ workflowId, pod: podRef(runner.pod), reason, ...grace, ...announce, keepLog: true });
    if (state === 'gone') see(this.#life, { ...runner.pod, gone: true, ended: true });
    return undefined;
  }

  async #waitEnded(action: Extract<UnregistrationAction, { kind: 'waitEnded' }>, facts: UnregistrationFacts): Promise<undefined> {
    const life = this.#life;
    const { spec, runner } = life;
    life.enter('Draining');
    const nowMs = Date.now();
    // A runner that was never online cannot hold a job for long; one that was may have taken a job that nothing tells of.
    const settleMs = (this.#provenAt ?? nowMs) + (runner.online ? spec.timeouts.jobTimeoutMs : spec.intervals.removalSettleMs) - nowMs;
    const jobMs = (runner.jobDeadline ?? nowMs + spec.timeouts.jobTimeoutMs) - nowMs;
    const timeouts = {
      settled: settleMs,
      jobDeadline: jobMs,
      idleConfirmed: (this.#provenAt ?? nowMs) + spec.intervals.idleConfirmMs - nowMs,
      busyRecheck: Math.min(spec.intervals.busyRecheckMs, jobMs),
      terminated: this.#stopRequested === 'force' ? FORCED_OVERDUE_MS : spec.pod.terminationGracePeriodSeconds * 1_000 + TERMINATION_OVERDUE_MS,
    };
    const summary = action.until === 'busyRecheck' ? `${action.why}: safety re-check` : action.why;
    const timeoutMs = Math.max(1, timeouts[action.until]);
    life.waitFor(action.why, nowMs + timeoutMs);
    if (await this.#pause(timeoutMs, facts, summary.slice(0, 150))) return undefined;
    if (runner.jobDeadline !== undefined && Date.now() >= runner.jobDeadline) {
      life.requestCancel({ mode: 'stop', reason: 'the job ran into its timeout', by: 'run_timeout' });
    } else if (action.until === 'idleConfirmed') {
      this.#idleConfirmed = true;
      return await this.#look();
    } else if (action.until === 'settled') {
      this.#settled = true;
    } else if (action.until === 'terminated') {
      return await this.#stopPod('force', 'the pod outlived its grace period', 0);
    }
    if (this.#answer !== 'removed') this.#answer = undefined;
    return undefined;
  }

  #done(): Unregistered {
    return {
      ...(this.#removal === undefined ? {} : { removal: this.#removal }),
      stoppedByUs: this.#stopRequested !== undefined,
      removedAlive: this.#removedAlive,
      tornDown: this.#tornDown,
    };
  }

  /** The start is awaited where no cancellation reaches it: from then on somebody else sees to the registration. */
  async #handOff(): Promise<string> {
    const { spec, runnerName, scope } = this.#life;
    const input: DeregistrationInput = {
      [scope.kind]: scope.name,
      credential: spec.credential,
      runner: this.#life.registration,
      reason: 'the runner ended and the CI server did not remove its registration yet',
      firstRetry: `${spec.intervals.busyRetryMs}ms`,
    };
    const workflowId = `deregistration-${runnerName}`;
    try {
      await startChild(DEREGISTRATION_WORKFLOW, {
        workflowId,
        args: [input],
        parentClosePolicy: ParentClosePolicy.ABANDON,
        staticSummary: `remove the registration of ${runnerName}`,
      });
    } catch (error) {
      // Somebody is at it already (this workflow was reset, or a person started it).
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    }
    return workflowId;
  }
}
