import {
  CancellationScope,
  condition,
  continueAsNew,
  isCancellation,
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
      await close(listener, at, { remove: false });
      return await run.cancelRequested;
    }
    if (result.kind === 'ended') return await close(listener, at, { remove: result.remove });
    if (change !== undefined) return await restart(listener, at, change);
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

/**
 * Listens until the activity completes, or stops it because the input has changed, the run is
 * cancelled, or its history is long.
 */
async function listenUntilInterrupted(
  listener: ScaleSetListenerInput,
  cursor: SessionCursor | undefined,
  changes: Changes,
  run: CancellationScope,
): Promise<{ result: ListenResult; change?: AdmittedListener | undefined }> {
  const scope = new CancellationScope();
  const session = cursor === undefined ? {} : { cursor };
  let done = false;
  const listening = scope
    .run(
      async () =>
        await listenActivities(`Listen to the scale set ${listener.name}`).listen({
          listener,
          ...session,
        }),
    )
    .catch((error: unknown) => {
      // The activity was cancelled between two attempts.
      if (isCancellation(error)) return { kind: 'continue' as const, ...session };
      throw error;
    })
    .finally(() => (done = true));
  listening.catch(() => undefined); // awaited below
  let change: AdmittedListener | undefined;
  const isInterrupted = (): boolean =>
    done || change !== undefined || run.consideredCancelled || changes.areMany;
  while (!isInterrupted()) {
    await condition(() => isInterrupted() || changes.areWaiting);
    if (changes.areWaiting) change = await changes.take();
  }
  scope.cancel();
  return { result: await listening, change };
}

/** Ends the session, if there is one, and removes the scale set if `remove`. */
async function close(
  listener: ScaleSetListenerInput,
  cursor: SessionCursor | undefined,
  { remove }: { readonly remove: boolean },
): Promise<void> {
  if (cursor === undefined && !remove) return;
  const { closeScaleSet } = listenActivities(remove ? 'Remove the scale set' : 'Close the session');
  await CancellationScope.nonCancellable(
    async () =>
      await closeScaleSet({ listener, remove, ...(cursor === undefined ? {} : { cursor }) }),
  );
}

/**
 * Continues with the changed input, in the same session if it is the same scale set. A scale set
 * that the input no longer names is removed.
 */
async function restart(
  before: ScaleSetListenerInput,
  cursor: SessionCursor | undefined,
  { listener, hash }: AdmittedListener,
): Promise<never> {
  const isSame = identityOf(listener) === identityOf(before);
  if (!isSame) await close(before, cursor, { remove: true });
  return await makeContinueAsNewFunc<typeof scaleSetListener>({
    memo: { ...workflowInfo().memo, [LISTENER_INPUT_MEMO]: hash },
  })(listener, isSame ? cursor : undefined);
}

function identityOf({ scope, name, group, credential }: ScaleSetListenerInput): string {
  return JSON.stringify([scope.kind, scope.name, name, group, credential]);
}
