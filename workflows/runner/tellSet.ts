/** What a runner tells the set it belongs to. A set that is gone, or has no room for the news, costs the runner nothing. */
import { defined } from '../../core/defined.ts';
import { getExternalWorkflowHandle, log, workflowInfo } from '@temporalio/workflow';
import { SET_RUNNER_MEMO, runnerBusySignal, runnerEndedSignal, runnerOnlineSignal, setWorkflowId, type RunnerResult, type RunnerEndedNews, type RunnerNews, type SetRunnerMemo } from '../../core/contract/index.ts';
import type { RunnerLife } from './life.ts';

/** Once in a life, however often its runner is replaced. */
export async function tellSetOnline(life: RunnerLife): Promise<void> {
  const { set } = life.spec;
  if (set === undefined || life.toldOnline) return;
  life.toldOnline = true;
  await tolerate({ set }, async () => await getExternalWorkflowHandle(setWorkflowId(set)).signal(runnerOnlineSignal, news(life)));
}

/** Once in a life, and only where the set asks for it: it costs five events, and most sets hear of jobs by their events. */
export async function tellSetBusy(life: RunnerLife): Promise<void> {
  const { set } = life.spec;
  const { tellsBusy } = (workflowInfo().memo?.[SET_RUNNER_MEMO] ?? {}) as Partial<SetRunnerMemo>;
  if (set === undefined || tellsBusy !== true || life.toldBusy === true) return;
  life.toldBusy = true;
  await tolerate({ set }, async () => await getExternalWorkflowHandle(setWorkflowId(set)).signal(runnerBusySignal, news(life)));
}

/** The last thing in a life. */
export async function tellSetEnded(life: RunnerLife, { outcome, cause }: RunnerResult): Promise<void> {
  const { runner, spec, cancel } = life;
  const { set } = spec;
  if (set === undefined) return;
  // An ephemeral runner that succeeded by itself has had its job, although no event or probe may have told of it.
  const ranJob = life.sawJob || (spec.ephemeral && outcome === 'succeeded' && cancel === undefined);
  const ended: RunnerEndedNews = { ...news(life), outcome, ...defined({ cause }), wasOnline: life.toldOnline || runner.online || ranJob, ranJob };
  await tolerate({ set }, async () => await getExternalWorkflowHandle(setWorkflowId(set)).signal(runnerEndedSignal, ended));
}

function news({ workflowId, runnerName }: RunnerLife): RunnerNews {
  return { workflowId, runnerName };
}

/** Tells news that whoever should hear it can do without. */
export async function tolerate(whom: { readonly set: string } | { readonly job: string }, tell: () => Promise<void>): Promise<void> {
  try {
    await tell();
  } catch (error) {
    log.info('News was not told: who should hear it will see for itself, if it is there', { ...whom, why: String(error) });
  }
}
