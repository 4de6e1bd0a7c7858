import { activityInfo, cancellationSignal } from '@temporalio/activity';
import { toFailure } from './failures.ts';
import { lastTry } from './lastTry.ts';
import { withHeartbeats } from './heartbeats.ts';
import { stateAfter, takeDown, type TakenDown } from './pods.ts';
import { answerSoon } from './heldBackAnswers.ts';
import { CiServerError, type ActivityPorts, type CiServer } from './ports.ts';
import type { ReleaseInput, Released } from '../core/calls/index.ts';

/**
 * Tries that were answered with a refusal, by runner. A retry that the workflow calls off while it backs off (the job has ended, by the
 * runner's own word) leaves no trace in history; what is told to people as the number of tries is kept here, in this process.
 */
const refused = new Map<string, number>();
const MAX_REFUSED = 20_000;

function noteRefusal(key: string): void {
  if (refused.size >= MAX_REFUSED) refused.delete(refused.keys().next().value ?? '');
  refused.set(key, (refused.get(key) ?? 0) + 1);
}

/** Asks the CI server to remove the registration: the authority on whether a runner may go. */
export async function release(ports: ActivityPorts, input: ReleaseInput): Promise<Released> {
  const { released, takenDown } = await releaseAndTakeDown(ports, input);
  if (takenDown === undefined) return released;
  return answerSoon(ports.shortWaits, takenDown.lookOut, (pod) => ({ ...released, pod: stateAfter(takenDown, pod) }), input.tearDown?.goneWithinMs);
}

async function releaseAndTakeDown(ports: ActivityPorts, input: ReleaseInput): Promise<{ released: Released; takenDown: TakenDown | undefined }> {
  const key = `${input.credential}/${input.scope.name}/${input.runner.name}`;
  try {
    return await withHeartbeats(`removing the registration of ${input.runner.name}`, async () => {
      const [removed, tornDown] = await Promise.allSettled([
        remove(ports.ciServers.get(input.credential), input),
        // An ended runner's pod and Secret go whatever the CI server answers, and even while it does not.
        input.tearDown === undefined ? undefined : takeDown(ports, input.tearDown),
      ]);
      const removal = fulfilled(removed);
      const takenDown = fulfilled(tornDown);
      const { attempt } = activityInfo();
      const attempts = Math.max(attempt, (refused.get(key) ?? 0) + 1);
      refused.delete(key);
      return { released: { ...removal, attempts, ...(attempt > 1 ? { retried: true as const } : {}) }, takenDown };
    });
  } catch (error) {
    noteRefusal(key);
    // An unknown refusal is no verdict on the runner: it is asked again.
    throw lastTry(toFailure(error, input, false));
  }
}

function fulfilled<T>(settled: PromiseSettledResult<T>): T {
  if (settled.status === 'rejected') throw settled.reason;
  return settled.value;
}

async function remove(ciServer: CiServer, { scope, runner, onBusy }: ReleaseInput): Promise<Pick<Released, 'answer' | 'runnerId'>> {
  const signal = cancellationSignal();
  const id = runner.id ?? (await ciServer.find(scope, runner, signal))?.id;
  if (id === undefined) return { answer: 'absent' };
  try {
    return { answer: await ciServer.removeRegistration(scope, id, signal), runnerId: id };
  } catch (error) {
    if (onBusy === 'return' && error instanceof CiServerError && error.kind === 'busy') return { answer: 'busy', runnerId: id };
    throw error;
  }
}
