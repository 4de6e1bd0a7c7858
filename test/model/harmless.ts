/** Mutants that nothing catches, and why that is no hole in the model. What is missed and not here is one. */
import type { Mutant } from './mutants.ts';

/** By table, function and condition; where only one of the two changes is meant, that as well. */
const HARMLESS: Readonly<Record<string, string>> = {
  'unregisterTable.decideUnregistration: f.ephemeral && f.ended && f.exitCode === 0 && f.sawJob && f.stop === undefined && f.stopped === undefined && !f.toldToGo (never)':
    'row 2 saves a request: without it the CI server is asked, and does not know the runner',
  'unregisterTable.whenUnregistered: f.looked (negated)': 'the deletion itself looks once more (unlessStarted)',
  'unregisterTable.whenUnlisted: f.looked (negated)': 'the same',
  'unregisterTable.whenBusy: f.ephemeral': 'how often a busy runner is asked about: a matter of requests, which the model does not count',
  "unregisterTable.whenUnlisted: f.ownSignal === 'busy' (never)": 'one that has a job was online: it is asked about again after a minute, when lists have it, and is busy then',
  'unregisterTable.whenUnlisted: f.heldId (never)': 'it is asked about every ten seconds then; the first list that is old enough counts all the same',
  "unregisterTable.whenUnlisted: action.kind === 'tearDown' (never)": 'an idle runner that no list of today has was removed by somebody: there is nothing to ask about once more',
  "unregisterTable.whenUnlisted: action.kind === 'tearDown' (negated)": 'what has not registered when the deadline is out never will (world.ts): it may be stopped at once',
  "unregisterTable.whenFailed: f.outOfTime === 'credentialsRetry'": 'a removal that fails for good while the runner lives (its credential has left the config) is not in the world; the rows of the table are tested one by one',
  "unregisterTable.whenUnanswered: f.outOfTime === 'patience' (never)": 'a CI server that stays away for ever is not in the world: asked again, it answers; the rows of the table are tested one by one',
  "unregisterTable.whenUnanswered: f.ownSignal === 'busy' (never)": "the world's jobs survive the removal of their registration, which nobody says of GitHub's",
  "unregisterTable.stopOrAwait: f.outOfTime === 'terminated' (never)": 'no pod of the world outlives its grace; the rows of the table are tested one by one',
  "unregisterFacts.hear: news.wait === 'patience' (never)": 'a CI server that stays away for ever is not in the world: asked again, it answers',
  'onlineDecision.decideComingUp: problem !== undefined (never)': 'an image that cannot be had is not in the world; the rows of the table are tested one by one',
  'onlineDecision.decideComingUp: pod.scheduled': 'a pod that no node is found for is not in the world; the rows of the table are tested one by one',
  'onlineDecision.decideComingUp: pod.online === undefined': 'when a wait looks again is a matter of time, which the world has only as its end',
  "verdicts.decideEnding: exit?.record?.reason === 'timeout' (never)": "a command's own timeout is not in the world; the rows of the table are tested one by one",
  "verdicts.decideEnding: f.pod?.reason === 'DeadlineExceeded' (never)": "a pod's activeDeadlineSeconds is not in the world; the rows of the table are tested one by one",
  'verdicts.decideEnding: initFailure !== undefined (never)': 'an init container that fails is not in the world; the rows of the table are tested one by one',
  'verdicts.initFailureOf: pod === undefined || started || !pod.ended || pod.gone || pod.terminating || pod.disruption !== undefined': 'an init container that fails is not in the world; the rows of the table are tested one by one',
  "verdicts.initFailureOf: pod.problem?.kind === 'config'": 'an init container that fails is not in the world; the rows of the table are tested one by one',
  "verdicts.didItsJob: f.pod?.exit?.record?.job === 'none' (never)": "a supervisor's word that there was no job is not in the world; the rows of the table are tested one by one",
  'verdicts.isComplete: checkpoints (never)': 'a command that checkpoints is not in the world; the rows of the table are tested one by one',
  'verdicts.isComplete: exit.record === undefined': "a supervisor's record of a command is not in the world; the rows of the table are tested one by one",
  'verdicts.whenDrained: exit?.oomKilled === true (never)': 'a pod without memory enough is not in the world; the rows of the table are tested one by one',
  "verdicts.whenCancelled: cancel.reason === ''": 'a matter of words',
};

const keyOf = ({ table, where, condition }: Pick<Mutant, 'table' | 'where' | 'condition'>): string => `${table}.${where}: ${condition}`;

export function whyHarmless(mutant: Omit<Mutant, 'load'>): string | undefined {
  return HARMLESS[`${keyOf(mutant)} (${mutant.change})`] ?? HARMLESS[keyOf(mutant)];
}
