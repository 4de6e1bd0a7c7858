import {
  CancellationScope,
  condition,
  continueAsNew,
  isCancellation,
  log,
  makeContinueAsNewFunc,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import type { AdmittedListener, ListenResult, SessionCursor } from '../../core/activities/index.ts';
import {
  LISTENER_INPUT_MEMO,
  listenerChangedSignal,
  type ScaleSetListenerInput,
} from '../../core/contract/index.ts';
import { isObject } from '../../core/domain/isObject.ts';
import { admissionActivities, listenActivities, toCallResult } from '../shared/activityProxies.ts';

/** Number of activities `listen` in one run. Each takes at most 50 minutes. */
const LISTENS = 20;
/** Maximum number of signals without effect in one run. Each adds events to the history. */
const MAX_REJECTED = 1_000;

/**
 * Maximum time to close a session when only the credential has changed (ms). GitHub ends an
 * unused session by itself.
 */
const SESSION_CLOSE_MS = 60_000;
/** Maximum time to remove the previous scale set (ms). The next one is read afterwards. */
const REPLACEMENT_MS = 5 * 60_000;
/** Maximum time to remove the scale set of a set that has ended (ms). `decommission` waits for it. */
const REMOVAL_MS = 30 * 60_000;

/**
 * Reads the messages of a scale set for a runner set, which starts it. One activity after the other
 * holds the session. Completes when the set has ended, or no longer takes its demand from the scale
 * set.
 *
 * @param input - validated in the first step of each run
 * @param cursor - session of the previous run, if this run continues it. Only `input` decides which
 * scale set is read: GitHub does not find the session of another one
 * @throws ApplicationFailure `InvalidInput` (non-retryable), naming every invalid field
 */
export async function scaleSetListener(
  input: ScaleSetListenerInput,
  cursor?: SessionCursor,
): Promise<void> {
  const received: unknown[] = [];
  setHandler(listenerChangedSignal, (body) => void received.push(body), {
    description: 'The declaration of the runner set has changed',
  });
  const { listener } = await admissionActivities().admitListener({ input });
  setCurrentDetails(
    `Reads the scale set ${listener.name} of ${listener.scope.name} for the set ${listener.set}`,
  );
  const run = CancellationScope.current();
  const changes = new Changes(listener, received);
  let at = cursor;
  for (let count = 0; count < LISTENS && !changes.areMany; count++) {
    // The activity stops by itself when it is cancelled, and returns its session.
    const { result, change } = await CancellationScope.nonCancellable(
      async () => await listenUntilInterrupted(listener, at, changes, run),
    );
    at = result.cursor;
    if (run.consideredCancelled) {
      await CancellationScope.nonCancellable(
        async () => await close(listener, at, { remove: false, withinMs: SESSION_CLOSE_MS }),
      );
      return await run.cancelRequested;
    }
    if (change !== undefined) return await restart(listener, at, change);
    if (result.kind === 'ended') {
      const late = await closeUntilInterrupted(listener, at, changes, result);
      if (late !== undefined) return await restart(listener, at, late);
      if (!changes.areMany) return;
    }
  }
  await continueAsNew<typeof scaleSetListener>(input, at);
}

/**
 * Changes that the set has sent. Anyone may send signals, so a change is validated before it is used.
 * Only the latest change counts.
 */
class Changes {
  readonly #listener: ScaleSetListenerInput;
  readonly #received: unknown[];
  #rejected = 0;

  constructor(listener: ScaleSetListenerInput, received: unknown[]) {
    this.#listener = listener;
    this.#received = received;
  }

  /** Whether a change has arrived that {@link take} has not returned yet. */
  get areWaiting(): boolean {
    return this.#received.length > 0;
  }

  /** Whether this run has received so many signals that it must continue as new. */
  get areMany(): boolean {
    return this.#rejected >= MAX_REJECTED || workflowInfo().continueAsNewSuggested;
  }

  /** Returns the latest valid change, or `undefined` if there is none. */
  async take(): Promise<AdmittedListener | undefined> {
    const bodies = this.#received.splice(0);
    this.#rejected += bodies.length - 1;
    const body = bodies.at(-1);
    if (!isObject(body)) return this.#reject();
    const admitted = await toCallResult(
      admissionActivities().admitListener({ input: body['input'] }),
    );
    if (admitted.kind !== 'done') return this.#reject();
    const { listener, hash } = admitted.value;
    return listener.set !== this.#listener.set ||
      hash === workflowInfo().memo?.[LISTENER_INPUT_MEMO]
      ? this.#reject()
      : admitted.value;
  }

  #reject(): undefined {
    this.#rejected++;
  }
}

/** Result of a call, with the change that has interrupted it. */
interface Interruptible<T> {
  readonly result: T;
  readonly change: AdmittedListener | undefined;
}

/**
 * Listens until the activity completes, or stops it because the input has changed, the run is
 * cancelled, or its history is long.
 */
async function listenUntilInterrupted(
  listener: ScaleSetListenerInput,
  cursor: SessionCursor | undefined,
  changes: Changes,
  run: CancellationScope,
): Promise<Interruptible<ListenResult>> {
  const session = cursor === undefined ? {} : { cursor };
  const { listen } = listenActivities({ summary: `Listen to the scale set ${listener.name}` });
  return await runUntilInterrupted(
    changes,
    () => run.consideredCancelled,
    async (): Promise<ListenResult> => {
      try {
        return await listen({ listener, ...session });
      } catch (error) {
        // The activity was cancelled between two attempts.
        if (isCancellation(error)) return { kind: 'continue', ...session };
        throw error;
      }
    },
  );
}

/**
 * Ends the session, and removes the scale set if `remove`, until the input changes or the history
 * is long.
 * @returns the change
 */
async function closeUntilInterrupted(
  listener: ScaleSetListenerInput,
  cursor: SessionCursor | undefined,
  changes: Changes,
  { remove }: { readonly remove: boolean },
): Promise<AdmittedListener | undefined> {
  const { change } = await CancellationScope.nonCancellable(
    async () =>
      await runUntilInterrupted(
        changes,
        () => false,
        async () => await close(listener, cursor, { remove, withinMs: REMOVAL_MS }),
      ),
  );
  return change;
}

/**
 * Runs a call until it completes, or cancels it because the input has changed, the history is long,
 * or `isStopped`.
 */
async function runUntilInterrupted<T>(
  changes: Changes,
  isStopped: () => boolean,
  call: () => Promise<T>,
): Promise<Interruptible<T>> {
  const scope = new CancellationScope();
  let done = false;
  const running = scope.run(call).finally(() => (done = true));
  running.catch(() => undefined); // awaited below
  let change: AdmittedListener | undefined;
  const isInterrupted = (): boolean =>
    done || change !== undefined || changes.areMany || isStopped();
  while (!isInterrupted()) {
    await condition(() => isInterrupted() || changes.areWaiting);
    if (changes.areWaiting) change = await changes.take();
  }
  scope.cancel();
  return { result: await running, change };
}

/**
 * Ends the session, if there is one, and removes the scale set if `remove`. What cannot be closed
 * within the time is left, because its credential or its scope may no longer exist.
 * @returns whether nothing is left
 */
async function close(
  listener: ScaleSetListenerInput,
  cursor: SessionCursor | undefined,
  { remove, withinMs }: { readonly remove: boolean; readonly withinMs: number },
): Promise<boolean> {
  if (cursor === undefined && !remove) return true;
  const { closeScaleSet } = listenActivities({
    summary: remove ? 'Remove the scale set' : 'Close the session',
    withinMs,
  });
  const result = await toCallResult(
    closeScaleSet({ listener, remove, ...(cursor === undefined ? {} : { cursor }) }),
  );
  if (result.kind !== 'failed') return result.kind === 'done';
  const { set, scope, name, credential } = listener;
  const left = remove ? 'scale set' : 'session of the scale set';
  setCurrentDetails(`Left the ${left} ${name} of ${scope.name}: ${result.message}`);
  log.warn(`failed to ${remove ? 'remove a scale set' : 'close a session'}; it was left`, {
    set,
    scaleSet: name,
    scope: scope.name,
    credential,
    reason: result.message,
  });
  return false;
}

/**
 * Continues with the changed input, in the same session if it is the same scale set with the same
 * credential. A scale set that the input no longer names is removed. With another credential a new
 * session is opened, or the previous one continued if it could not be closed.
 */
async function restart(
  before: ScaleSetListenerInput,
  cursor: SessionCursor | undefined,
  { listener, hash }: AdmittedListener,
): Promise<never> {
  const isSameScaleSet = identityOf(listener) === identityOf(before);
  const isSameSession = isSameScaleSet && listener.credential === before.credential;
  const closed =
    !isSameSession &&
    (await CancellationScope.nonCancellable(
      async () =>
        await close(before, cursor, {
          remove: !isSameScaleSet,
          withinMs: isSameScaleSet ? SESSION_CLOSE_MS : REPLACEMENT_MS,
        }),
    ));
  return await makeContinueAsNewFunc<typeof scaleSetListener>({
    memo: { ...workflowInfo().memo, [LISTENER_INPUT_MEMO]: hash },
  })(listener, isSameScaleSet && !closed ? cursor : undefined);
}

/** Returns the scale set of an input. GitHub ignores the case of names. */
function identityOf({ scope, name, group }: ScaleSetListenerInput): string {
  return JSON.stringify([scope.kind, scope.name, name, group]).toLowerCase();
}
