/** What a set can be told, and asked. */
import { defined } from '../../core/defined.ts';
import { ActivityFailure, ApplicationFailure, setHandler } from '@temporalio/workflow';
import { readReason } from '../../core/domain/cancellation.ts';
import type { RunningSet } from './reconcile.ts';
import { workerCalls } from '../calls.ts';
import { applyUpdate, demandSignal, drainSetUpdate, holdUpdate, pauseUpdate, resumeUpdate, runnerBusySignal, runnerEndedSignal, runnerOnlineSignal, scaleUpdate, setDeclarationQuery, setStatusQuery, setTemplateUpdate, type RunnerSetInput, type RunnerSetStatus, type SetScale } from '../../core/contract/index.ts';

/** Sets all handlers. */
export function listen(set: RunningSet): void {
  /** At once where that can be: what an update changes must be known before the set may continue as new. */
  const changed = (apply: Parameters<RunningSet['change']>[0]): RunnerSetStatus | Promise<RunnerSetStatus> => (set.hasBegun ? set.change(apply) : set.begun().then(() => set.change(apply)));
  const inTurn = turns();
  const declare = async (toNext: (now: RunnerSetInput) => RunnerSetInput): Promise<RunnerSetStatus> =>
    await set.changing(async () => await inTurn(async () => {
      await set.begun();
      const { spec, declaration, schedule, at } = await admitted(toNext(set.state.facts.declaration));
      return set.change((state, now) => state.declare(spec, declaration, schedule, at, now), at);
    }));

  setHandler(demandSignal, ({ events }) => set.receive((state, now) => state.jobEvents(events, now), events.length), { description: 'Events of jobs that this set serves' });
  setHandler(runnerOnlineSignal, (news) => set.receive((state, now) => state.online(news, now)), { description: 'A runner of this set is online' });
  setHandler(runnerBusySignal, (news) => set.receive((state, now) => state.busy(news, now)), { description: 'The job of a runner of this set has started' });
  setHandler(runnerEndedSignal, (news) => set.receive((state, now) => state.ended(news, now)), { description: 'A runner of this set has ended' });
  setHandler(setStatusQuery, () => set.status(), { description: 'Wanted and present runners, jobs, and what it waits for' });
  setHandler(setDeclarationQuery, () => set.state.declarationNow(), { description: 'What the set was last told to be' });
  setHandler(scaleUpdate, async (scale) => await declare((now) => scaled(now, scale)), {
    description: 'Another size. Body: {replicas}, or {minIdle, max}',
    validator: (scale) => refuseWhileEnding(set, typeof scale === 'object' && scale !== null, 'give {"replicas": …} or {"minIdle": …, "max": …}'),
  });
  setHandler(applyUpdate, async (input) => await declare(() => input), {
    description: 'Another declaration, as a whole. A template that differs starts a rollout',
    validator: (input) => refuseWhileEnding(set, input?.name === set.name, `name: this set is called ${set.name}`),
  });
  setHandler(setTemplateUpdate, async (template) => await declare((now) => ({ ...now, template })), {
    description: 'Another template: starts a rollout if it differs',
    validator: (template) => refuseWhileEnding(set, typeof template === 'object' && template !== null, 'give the template of the runners'),
  });
  setHandler(pauseUpdate, (body?: { reason?: string }) => changed((state) => state.pause(readReason(body))), { description: 'Start no runner. Body: {reason}', validator: (_body?: { reason?: string }) => refuseWhileEnding(set) });
  setHandler(resumeUpdate, () => changed((state) => state.resume()), { description: 'Start runners again, also after a breaker stopped it', validator: () => refuseWhileEnding(set) });
  setHandler(holdUpdate, ({ runner, release }) => changed((state) => state.hold(runner, release === true)), {
    description: 'Keep a runner from scale-downs and rollouts. Body: {runner, release}',
    validator: (body) => {
      const { runner = '', release } = body ?? {};
      refuseWhileEnding(set, typeof runner === 'string' && runner !== '', 'runner: give its name or workflow id');
      refuseUnlessThere(set, runner, release === true);
    },
  });
  setHandler(drainSetUpdate, (body?: { reason?: string }) => changed((state) => state.end(readReason(body))), { description: 'Drain every runner; then the set ends. Body: {reason}' });
}

/** Fails an update before it is in the history. */
function refuseWhileEnding(set: RunningSet, valid = true, otherwise = ''): void {
  if (!valid) throw new Error(otherwise);
  if (set.hasBegun && set.state.facts.ending !== undefined) throw new Error('the set is being drained, and ends when its runners have');
}

/** A set that has not begun has no runner, and holds none. */
function refuseUnlessThere(set: RunningSet, runner: string, release: boolean): void {
  const there = set.hasBegun && (release ? [...set.state.holds].some((held) => set.state.isSame(held, runner)) : set.state.runners.find(runner) !== undefined);
  if (!there) throw new Error(`runner: this set ${release ? 'holds' : 'has'} no "${runner}"`);
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
  return { ...rest, ...defined({ minIdle, max }), ...scale };
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
