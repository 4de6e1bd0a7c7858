/** What a set can be told, and asked. */
import { setHandler } from '@temporalio/workflow';
import { demandSignal, jobsSeenSignal, runnerBusySignal, runnerEndedSignal, runnerOnlineSignal, setDeclarationQuery, setRequestSignal, setStatusQuery } from '../../core/contract/index.ts';
import type { RunningSet } from './reconcile.ts';

/**
 * Sets all handlers. A set takes no updates: one that reaches a worker together with other news, and not the workflow in its cache, is put in
 * another order by a later replay (https://github.com/temporalio/sdk-python/issues/673), and nothing would get the set on again.
 */
export function listen(set: RunningSet): void {
  setHandler(demandSignal, ({ events }) => set.receive((state, now) => state.jobEvents(events, now), events.length), { description: 'Events of jobs that this set serves' });
  setHandler(jobsSeenSignal, (seen) => set.receive((state, now) => state.queueChecked(seen, now), seen.jobs.length), { description: 'Jobs that a look at the CI server has found' });
  setHandler(runnerOnlineSignal, (news) => set.receive((state, now) => state.online(news, now)), { description: 'A runner of this set is online' });
  setHandler(runnerBusySignal, (news) => set.receive((state, now) => state.busy(news, now)), { description: 'The job of a runner of this set has started' });
  setHandler(runnerEndedSignal, (news) => set.receive((state, now) => state.ended(news, now)), { description: 'A runner of this set has ended' });
  setHandler(setRequestSignal, (request) => set.receiveCommand(request), { description: 'What an operator wants: start the workflow setCommand, which sends it and has the answer' });
  setHandler(setStatusQuery, () => set.status(), { description: 'Wanted and present runners, jobs, and what it waits for' });
  setHandler(setDeclarationQuery, () => set.state.declarationNow(), { description: 'What the set was last told to be' });
}
