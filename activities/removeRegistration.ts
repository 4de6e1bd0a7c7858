import { activityInfo, cancellationSignal } from '@temporalio/activity';
import { LRUCache } from 'lru-cache';
import type { RegistrationRemoval, RemoveRegistrationInput } from '../core/calls/index.ts';
import { refusal } from './refusals.ts';
import { withHeartbeats } from './heartbeats.ts';
import { finalWhenOutOfTime } from './outOfTime.ts';
import { CiServerError, type ActivityPorts, type CiServer } from './ports.ts';

/**
 * Tries that were refused, by runner. A retry that the workflow calls off while it backs off (the job has ended, by the runner's own
 * word) leaves no trace in history; what is told to people as the number of tries is kept here, in this process.
 */
const refusals = new LRUCache<string, number>({ max: 20_000 });

/** Asks the CI server to remove a registration, and does nothing else: the CI server is the authority on whether a runner may go. */
export async function removeRegistration({ ciServers }: ActivityPorts, input: RemoveRegistrationInput): Promise<RegistrationRemoval> {
  const key = `${input.credential}/${input.scope.name}/${input.runner.name}`;
  const { attempt } = activityInfo();
  const refused = refusals.get(key) ?? 0;
  try {
    const removal = await withHeartbeats(`removing the registration of ${input.runner.name}`, async () => await remove(ciServers.get(input.credential), input));
    refusals.delete(key);
    return { ...removal, attempts: Math.max(attempt, refused + 1), ...(attempt > 1 ? { retried: true as const } : {}) };
  } catch (error) {
    refusals.set(key, refused + 1);
    // An unknown refusal is no verdict on the runner: it is asked again.
    throw finalWhenOutOfTime(refusal(error, input, false));
  }
}

async function remove(ciServer: CiServer, { scope, runner, onBusy }: RemoveRegistrationInput): Promise<Pick<RegistrationRemoval, 'answer' | 'runnerId'>> {
  const signal = cancellationSignal();
  const runnerId = runner.id ?? (await ciServer.find(scope, runner, signal))?.id;
  if (runnerId === undefined) return { answer: 'unlisted' };
  try {
    return { answer: await ciServer.removeRegistration(scope, runnerId, signal), runnerId };
  } catch (error) {
    if (onBusy === 'return' && error instanceof CiServerError && error.kind === 'busy') return { answer: 'busy', runnerId };
    throw error;
  }
}
