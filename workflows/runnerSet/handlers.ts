/** What a set can be told, and asked. */
import { ActivityFailure, ApplicationFailure, setHandler } from '@temporalio/workflow';
import { readReason } from '../../core/domain/cancellation.ts';
import type { RunningSet } from './reconcile.ts';
import { workerCalls } from './calls.ts';
import {
  applyUpdate,
  demandSignal,
  drainSetUpdate,
  holdUpdate,
  pauseUpdate,
  resumeUpdate,
  runnerEndedSignal,
  runnerOnlineSignal,
  scaleUpdate,
  setDeclarationQuery,
  setStatusQuery,
  setTemplateUpdate,
  type RunnerSetInput,
  type RunnerSetStatus,
  type SetScale,
} from '../../core/contract/index.ts';

/** Sets all handlers. */
export function listen(set: RunningSet): void {
  const { state } = set;
  const changed = (apply: (now: number) => void, at?: number): RunnerSetStatus => set.change(apply, at);
  const inTurn = turns();
  const declare = async (toNext: (now: RunnerSetInput) => RunnerSetInput): Promise<RunnerSetStatus> =>
    await set.changing(async () => await inTurn(async () => {
      const input = toNext(state.facts.declaration);
      const { spec, declaration, schedule, at } = await admitted(input);
      return changed((now) => state.declare(spec, declaration, schedule, now), at);
    }));

  setHandler(demandSignal, ({ events }) => set.receive((now) => state.jobEvents(events, now), events.length), { description: 'Events of jobs that this set serves' });
  setHandler(runnerOnlineSignal, (news) => set.receive((now) => state.online(news, now)), { description: 'A runner of this set is online' });
  setHandler(runnerEndedSignal, (news) => set.receive((now) => state.ended(news, now)), { description: 'A runner of this set has ended' });
  setHandler(setStatusQuery, () => set.status(), { description: 'Wanted and present runners, jobs, and what it waits for' });
  setHandler(setDeclarationQuery, () => state.declarationNow(), { description: 'What the set was last told to be' });
  setHandler(scaleUpdate, async (scale) => await declare((now) => scaled(now, scale)), {
    description: 'Another size. Body: {replicas}, or {minIdle, max}',
    validator: (scale) => refuseWhileEnding(set, typeof scale === 'object' && scale !== null, 'give {"replicas": …} or {"minIdle": …, "max": …}'),
  });
  setHandler(applyUpdate, async (input) => await declare(() => input), {
    description: 'Another declaration, as a whole. A template that differs starts a rollout',
    validator: (input) => refuseWhileEnding(set, input?.name === state.facts.spec.name, `name: this set is called ${state.facts.spec.name}`),
  });
  setHandler(setTemplateUpdate, async (template) => await declare((now) => ({ ...now, template })), {
    description: 'Another template: starts a rollout if it differs',
    validator: (template) => refuseWhileEnding(set, typeof template === 'object' && template !== null, 'give the template of the runners'),
  });
  setHandler(pauseUpdate, (body?: { reason?: string }) => changed(() => state.pause(readReason(body))), { description: 'Start no runner. Body: {reason}', validator: (_body?: { reason?: string }) => refuseWhileEnding(set) });
  setHandler(resumeUpdate, () => changed(() => state.resume()), { description: 'Start runners again, also after a breaker stopped it', validator: () => refuseWhileEnding(set) });
  setHandler(holdUpdate, ({ runner, release }) => changed(() => state.hold(runner, release === true)), {
    description: 'Keep a runner from scale-downs and rollouts. Body: {runner, release}',
    validator: (body) => {
      const { runner = '' } = body ?? {};
      refuseWhileEnding(set, typeof runner === 'string' && runner !== '', 'runner: give its name or workflow id');
      if (body.release === true ? !state.facts.holds.some((held) => state.isSame(held, runner)) : state.runners.find(runner) === undefined) throw new Error(`runner: this set ${body.release === true ? 'holds' : 'has'} no "${runner}"`);
    },
  });
  setHandler(drainSetUpdate, (body?: { reason?: string }) => changed(() => state.end(readReason(body))), { description: 'Drain every runner; then the set ends. Body: {reason}' });
}

/** Fails an update before it is in the history. */
function refuseWhileEnding(set: RunningSet, valid = true, otherwise = ''): void {
  if (!valid) throw new Error(otherwise);
  if (set.state.facts.ending !== undefined) throw new Error('the set is being drained, and ends when its runners have');
}

/** The failure that tells what is wrong, without the activity around it. */
async function admitted(input: RunnerSetInput): ReturnType<ReturnType<typeof workerCalls>['admitSet']> {
  try {
    return await workerCalls('check the declaration').admitSet({ input });
  } catch (error) {
    if (error instanceof ActivityFailure && error.cause instanceof ApplicationFailure) throw ApplicationFailure.nonRetryable(error.cause.message, error.cause.type);
    throw error;
  }
}

/** Another size; of an elastic one that names only one bound, the other stays. */
function scaled({ replicas, minIdle, max, ...rest }: RunnerSetInput, scale: SetScale): RunnerSetInput {
  if (scale.replicas !== undefined || replicas !== undefined) return { ...rest, ...scale };
  return { ...rest, ...(minIdle === undefined ? {} : { minIdle }), ...(max === undefined ? {} : { max }), ...scale };
}

/** Runs what it is given one after the other. */
function turns(): <T>(run: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return async (run) => {
    const mine = last.then(run, run);
    last = mine.catch(() => undefined);
    return await mine;
  };
}
