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
import type { ListenResult, SessionCursor } from '../../core/activities/index.ts';
import {
  LISTENER_INPUT_MEMO,
  listenerChangedSignal,
  type ScaleSetListenerInput,
} from '../../core/contract/index.ts';
import { isObject } from '../../core/domain/isObject.ts';
import { admissionActivities, listenActivities, toCallResult } from '../shared/activityProxies.ts';

/** Number of activities of one run, each almost an hour. */
const LISTENS = 20;
/** Maximum number of signals of one run that change nothing. */
const MAX_REJECTED = 1_000;

/** Changed input of a listener, admitted by this run. */
interface Change {
  readonly input: ScaleSetListenerInput;
  readonly hash: string;
}

/**
 * Reads the messages of a scale set for a runner set, which starts it. One activity after the other
 * holds the session. Completes when the set has ended, or takes its demand from elsewhere.
 *
 * @param input - validated in the first step of each run
 * @param cursor - session of the previous run, if this run continues it. It does not define which
 * scale set is read: a session that does not belong to it is not found
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
  const listener = await admissionActivities().admitListener({ input });
  setCurrentDetails(
    `Reads the scale set ${listener.name} of ${listener.scope.name} for the set ${listener.set}`,
  );
  const changes = new Changes(listener, received);
  let at = cursor;
  for (let times = 0; times < LISTENS && !changes.areMany; times++) {
    const { result, change } = await listenUnlessChanged(listener, at, changes);
    if (result?.kind === 'ended') {
      if (result.remove) await listenActivities('Remove the scale set').removeScaleSet(listener);
      return;
    }
    if (change !== undefined) return await restart(listener, change);
    at = result?.cursor;
  }
  await continueAsNew<typeof scaleSetListener>(input, at);
}

/** Changes that the set has sent. Anyone may send signals, so each is admitted first. */
class Changes {
  readonly #listener: ScaleSetListenerInput;
  readonly #received: unknown[];
  #rejected = 0;

  constructor(listener: ScaleSetListenerInput, received: unknown[]) {
    this.#listener = listener;
    this.#received = received;
  }

  get areWaiting(): boolean {
    return this.#received.length > 0;
  }

  /** Whether this run has received so many signals that it must continue as new. */
  get areMany(): boolean {
    return this.#rejected >= MAX_REJECTED;
  }

  /** Returns the latest valid change, or `undefined` if there is none. */
  async take(): Promise<Change | undefined> {
    const body = this.#received.splice(0).at(-1);
    if (!isObject(body) || typeof body['hash'] !== 'string') return this.#reject();
    const admitted = await toCallResult(
      admissionActivities().admitListener({ input: body['input'] }),
    );
    if (admitted.kind !== 'done' || admitted.value.set !== this.#listener.set)
      return this.#reject();
    return { input: admitted.value, hash: body['hash'] };
  }

  #reject(): undefined {
    this.#rejected++;
  }
}

/** Listens until the activity completes, or is cancelled because the input has changed. */
async function listenUnlessChanged(
  listener: ScaleSetListenerInput,
  cursor: SessionCursor | undefined,
  changes: Changes,
): Promise<{ result?: ListenResult | undefined; change?: Change }> {
  const scope = new CancellationScope();
  let done = false;
  const listening = scope
    .run(
      async () =>
        await listenActivities(`Listen to the scale set ${listener.name}`).listen({
          listener,
          ...(cursor === undefined ? {} : { cursor }),
        }),
    )
    .finally(() => (done = true));
  listening.catch(() => undefined); // awaited below
  for (;;) {
    await condition(() => done || changes.areWaiting);
    if (done) return { result: await listening };
    const change = await changes.take();
    if (change === undefined) continue;
    scope.cancel();
    try {
      return { result: await listening, change };
    } catch (error) {
      if (isCancellation(error)) return { change };
      throw error;
    }
  }
}

/** Continues with the changed input. A scale set that it no longer names is removed. */
async function restart(listener: ScaleSetListenerInput, { input, hash }: Change): Promise<never> {
  if (identityOf(input) !== identityOf(listener))
    await listenActivities('Remove the earlier scale set').removeScaleSet(listener);
  return await makeContinueAsNewFunc<typeof scaleSetListener>({
    memo: { ...workflowInfo().memo, [LISTENER_INPUT_MEMO]: hash },
  })(input);
}

function identityOf({ scope, name, group, credential }: ScaleSetListenerInput): string {
  return JSON.stringify([scope.kind, scope.name, name, group, credential]);
}
