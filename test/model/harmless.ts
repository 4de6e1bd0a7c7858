/** Mutants that nothing catches, and why that is no hole in the model. What is missed and not here is one. */
import type { Mutant } from './mutants.ts';

/** @param what - that the world does not have */
const notThere = (what: string): string => `${what} is not in the world; the rows of the table are tested one by one`;

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
  "unregisterTable.whenFailed: f.outOfTime === 'credentialsRetry'": notThere('a removal that fails for good while the runner lives (its credential has left the config)'),
  "unregisterTable.whenUnanswered: f.outOfTime === 'patience' (never)": 'a CI server that stays away for ever is not in the world: asked again, it answers; the rows of the table are tested one by one',
  "unregisterTable.whenUnanswered: f.ownSignal === 'busy' (never)": "the world's jobs survive the removal of their registration, which nobody says of GitHub's",
  "unregisterTable.stopOrAwait: f.outOfTime === 'terminated' (never)": 'no pod of the world outlives its grace; the rows of the table are tested one by one',
  "unregisterFacts.hear: news.wait === 'patience' (never)": 'a CI server that stays away for ever is not in the world: asked again, it answers',
  'onlineDecision.decideComingUp: problem !== undefined (never)': notThere('an image that cannot be had'),
  'onlineDecision.decideComingUp: pod.scheduled': notThere('a pod that no node is found for'),
  'onlineDecision.decideComingUp: pod.online === undefined': 'when a wait looks again is a matter of time, which the world has only as its end',
  "verdicts.decideEnding: exit?.record?.reason === 'timeout' (never)": notThere("a command's own timeout"),
  "verdicts.decideEnding: f.pod?.reason === 'DeadlineExceeded' (never)": notThere("a pod's activeDeadlineSeconds"),
  'verdicts.decideEnding: initFailure !== undefined (never)': notThere('an init container that fails'),
  'verdicts.initFailureOf: pod === undefined || started || !pod.ended || pod.gone || pod.terminating || pod.disruption !== undefined': notThere('an init container that fails'),
  "verdicts.initFailureOf: pod.problem?.kind === 'config'": notThere('an init container that fails'),
  "verdicts.didItsJob: f.pod?.exit?.record?.job === 'none' (never)": notThere("a supervisor's word that there was no job"),
  'verdicts.isComplete: checkpoints (never)': notThere('a command that checkpoints'),
  'verdicts.isComplete: exit.record === undefined': notThere("a supervisor's record of a command"),
  'verdicts.whenDrained: exit?.oomKilled === true (never)': notThere('a pod without memory enough'),
  "verdicts.whenCancelled: cancel.reason === ''": 'a matter of words',
};

const keyOf = ({ table, where, condition }: Pick<Mutant, 'table' | 'where' | 'condition'>): string => `${table}.${where}: ${condition}`;

export function whyHarmless(mutant: Omit<Mutant, 'load'>): string | undefined {
  return HARMLESS[`${keyOf(mutant)} (${mutant.change})`] ?? HARMLESS[keyOf(mutant)];
}
