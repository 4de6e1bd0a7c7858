/** What a runner tells the set it belongs to. A set that is gone, or has no room for the news, costs the runner nothing. */
import { defined } from '../../core/domain/omitUndefined.ts';
import { log, workflowInfo } from '@temporalio/workflow';
import type { SetWord } from '../../core/activities/index.ts';
import {
  SET_RUNNER_MEMO,
  type RunnerNews,
  type RunnerResult,
  type SetRunnerMemo,
} from '../../core/contract/index.ts';
import { tellSet } from '../shared/activityProxies.ts';
import type { RunnerLife } from './state.ts';

type End = Pick<RunnerResult, 'outcome' | 'cause'>;

/** What its set has noted at this life, as it started it. */
export function memoOfSet(): Partial<SetRunnerMemo> {
  return (workflowInfo().memo?.[SET_RUNNER_MEMO] ?? {}) as Partial<SetRunnerMemo>;
}

/** Once in a life, however often its runner is replaced: whoever gets the word has to tell it. */
export function onlineWord(life: RunnerLife): SetWord | undefined {
  const { set } = life.spec;
  if (set === undefined || life.toldOnline) return undefined;
  life.toldOnline = true;
  return { set, word: { kind: 'online', ...news(life) } };
}

export async function tellSetOnline(life: RunnerLife): Promise<void> {
  await tell(onlineWord(life));
}

/** Once in a life, and only where the set asks for it: most sets hear of jobs by their events. */
export async function tellSetBusy(life: RunnerLife): Promise<void> {
  const { set } = life.spec;
  if (set === undefined || memoOfSet().tellsBusy !== true || life.toldBusy === true) return;
  life.toldBusy = true;
  await tell({ set, word: { kind: 'busy', ...news(life) } });
}

/** The last thing in a life, unless its tear-down has told it. */
export async function tellSetEnded(life: RunnerLife, end: End): Promise<void> {
  if (life.toldEnded !== true) await tell(endWord(life, end));
}

export function endWord(life: RunnerLife, { outcome, cause }: End): SetWord | undefined {
  const { runner, spec, cancel } = life;
  const { set } = spec;
  if (set === undefined) return undefined;
  // An ephemeral runner that succeeded by itself has had its job, although no event or probe may have told of it.
  const ranJob = life.sawJob || (spec.ephemeral && outcome === 'succeeded' && cancel === undefined);
  return {
    set,
    word: {
      kind: 'ended',
      ...news(life),
      outcome,
      ...defined({ cause }),
      wasOnline: life.toldOnline || runner.online || ranJob,
      ranJob,
    },
  };
}

function news({ workflowId, runnerName }: RunnerLife): RunnerNews {
  return { workflowId, runnerName };
}

async function tell(word: SetWord | undefined): Promise<void> {
  if (word !== undefined) await tolerate({ set: word.set }, async () => await tellSet(word));
}

/** Tells news that whoever should hear it can do without. */
export async function tolerate(
  whom: { readonly set: string } | { readonly job: string },
  tell: () => Promise<void>,
): Promise<void> {
  try {
    await tell();
  } catch (error) {
    log.info('News was not told: who should hear it will see for itself, if it is there', {
      ...whom,
      why: String(error),
    });
  }
}
