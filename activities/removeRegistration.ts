import { activityInfo, cancellationSignal } from '@temporalio/activity';
import { LRUCache } from 'lru-cache';
import { FAILURE_TYPES, type RegistrationRemoval, type RemoveRegistrationInput } from '../core/calls/index.ts';
import { placeName, type ServedPlace } from '../core/domain/place.ts';
import { hashInRunnerName } from '../core/domain/runnerName.ts';
import { isPlaceLabel, placeLabel } from './compute/naming.ts';
import { failure } from './failures.ts';
import { refusal } from './refusals.ts';
import { withHeartbeats } from './heartbeats.ts';
import { finalWhenOutOfTime } from './outOfTime.ts';
import { CiServerError, type ActivityPorts, type CiRunner, type CiServer, type Compute } from './ports.ts';

/**
 * Tries that were refused, by runner. A retry that the workflow calls off while it backs off (the job has ended, by the runner's own
 * word) leaves no trace in history; what is told to people as the number of tries is kept here, in this process.
 */
const refusals = new LRUCache<string, number>({ max: 20_000 });

/** Asks the CI server to remove a registration, and does nothing else: the CI server is the authority on whether a runner may go. */
export async function removeRegistration({ ciServers, compute }: ActivityPorts, input: RemoveRegistrationInput): Promise<RegistrationRemoval> {
  const key = `${input.credential}/${input.scope.name}/${input.runner.name}`;
  const { attempt } = activityInfo();
  const refused = refusals.get(key) ?? 0;
  try {
    const removal = await withHeartbeats(`removing the registration of ${input.runner.name}`, async () => await remove(ciServers.get(input.credential), compute, input));
    refusals.delete(key);
    return { ...removal, attempts: Math.max(attempt, refused + 1), ...(attempt > 1 ? { retried: true as const } : {}) };
  } catch (error) {
    refusals.set(key, refused + 1);
    // An unknown refusal is no verdict on the runner: it is asked again.
    throw finalWhenOutOfTime(refusal(error, input, false));
  }
}

async function remove(ciServer: CiServer, compute: Compute, { scope, runner, onBusy, onlyOurs }: RemoveRegistrationInput): Promise<Pick<RegistrationRemoval, 'answer' | 'runnerId'>> {
  const signal = cancellationSignal();
  const found = runner.id === undefined || onlyOurs ? await ciServer.find(scope, runner, signal) : undefined;
  const fault = found && onlyOurs && foreign(found, runner, await compute.place());
  if (fault !== undefined) throw failure(fault, FAILURE_TYPES.notOurs, { final: true });
  const runnerId = runner.id ?? found?.id;
  if (runnerId === undefined) return { answer: 'unlisted' };
  try {
    return { answer: await ciServer.removeRegistration(scope, runnerId, signal), runnerId };
  } catch (error) {
    if (onBusy === 'return' && error instanceof CiServerError && error.kind === 'busy') return { answer: 'busy', runnerId };
    throw error;
  }
}

/** What shows that a registration is not Holdfast's, or of another place: whoever may start a workflow could else remove anybody's. */
function foreign({ id, name, labels }: CiRunner, asked: RemoveRegistrationInput['runner'], place: ServedPlace): string | undefined {
  if (name !== asked.name) return `registration ${id} is not that of ${asked.name} but of ${name}; nothing is removed: give the id and the name of one runner`;
  if (hashInRunnerName(name) === undefined) return `${name} is no runner of Holdfast's, by its name; nothing is removed: remove it at the CI server`;
  const places = labels.filter(isPlaceLabel);
  const isElsewhere = places.length > 0 && place.allNamespaces !== true && !places.includes(placeLabel(placeName(place)));
  return isElsewhere ? `${name} is a runner of another place than this worker's (${placeName(place)}), by its label ${places.join()}; nothing is removed: ask a worker of that place` : undefined;
}
