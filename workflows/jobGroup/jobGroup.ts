import { CancelledFailure, WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import {
  ChildWorkflowFailure,
  ParentClosePolicy,
  condition,
  continueAsNew,
  getExternalWorkflowHandle,
  log,
  setHandler,
  startChild,
  workflowInfo,
  type ChildWorkflowHandle,
} from '@temporalio/workflow';
import {
  JOB_WORKFLOW,
  cancelSignal,
  groupedJobId,
  jobGroupStatusQuery,
  jobVersionSignal,
  turnEndedSignal,
  type JobGroupStatus,
  type JobInput,
  type JobResult,
  type JobTurn,
  type JobVersion,
  type TurnEndedNews,
} from '../../core/contract/index.ts';
import { defined } from '../../core/domain/omitUndefined.ts';
import { COMMIT } from '../../core/domain/gitNames.ts';
import {
  NO_RUNS,
  begin,
  isToRun,
  step,
  type GroupAction,
  type GroupEvent,
  type GroupState,
} from './groupState.ts';
import type { RunEnd } from './reportWords.ts';
import { Reports, type CarriedReports } from './reports.ts';

/** How long it stays when nothing runs: until then the same commit is not run a second time. */
const QUIET = '7d';
/** Nothing is begun before it was quiet for so long: of pushes one after the other the last is run, and no other. */
const SETTLED = '1s';

/** What has come, and the job that goes with it; or how it has ended. */
interface Heard {
  readonly event: GroupEvent;
  readonly job?: JobInput;
  readonly end?: RunEnd;
  readonly turn?: JobTurn;
}

/**
 * The runs of one job for one change set, whose id it has (core/domain/changeSet.ts): to be started together with its first signal `version`. A newer
 * version has the older run ended first. Ends by itself when nothing has run for a week.
 * @param carried - what this workflow knew before it went on as a new one
 * @param reported - the same, of what the CI server was told
 */
export async function jobGroup(
  carried: GroupState = NO_RUNS,
  reported: CarriedReports = {},
): Promise<void> {
  const group = workflowInfo().workflowId;
  const heard: Heard[] = [];
  let state = carried;
  let job: JobInput | undefined;
  let lastEnd: RunEnd | undefined;
  let turn: JobTurn | undefined;
  const reports = new Reports(group, reported);
  let run: ChildWorkflowHandle<(input: JobInput) => Promise<JobResult>> | undefined;
  setHandler(jobVersionSignal, (body) => void heard.push(...readVersion(body)), {
    description: 'A version of the change set has come: {commit, at, job, again}',
  });
  setHandler(
    jobGroupStatusQuery,
    () => ({
      ...statusOf(group, state),
      waits: isToRun(
        state,
        heard.map(({ event }) => event),
      ),
      ...defined({ report: reports.status() }),
    }),
    { description: 'The newest version, and the run that is under way' },
  );

  const carryOut = async (action: GroupAction): Promise<void> => {
    if (action.kind === 'supersede') return await supersede(run);
    const { generation, commit } = action;
    run = await start(groupedJobId(group, generation), commit, job, (end) =>
      heard.push({ event: { kind: 'ended', generation, outcome: end.outcome }, end }),
    );
  };

  const isNews = (): boolean => heard.length > 0;
  for (;;) {
    if (state.running === undefined) await condition(isNews, QUIET);
    else await condition(isNews);
    if (!isNews()) return;
    for (const { event, job: asked, end, turn: inTurn } of heard.splice(0)) {
      lastEnd = end ?? lastEnd;
      turn = inTurn ?? turn;
      const next = step(state, event);
      if (next.state.generation !== state.generation) job = asked;
      ({ state } = next);
      for (const action of next.actions) await carryOut(action);
    }
    if (state.waits && (await condition(isNews, SETTLED))) continue;
    const next = begin(state);
    ({ state } = next);
    for (const action of next.actions) await carryOut(action);
    reports.tell(state, job, lastEnd);
    if (turn !== undefined && state.running === undefined && !isNews()) {
      const { definition, number } = turn;
      turn = undefined;
      await tellDefinition(definition, { group, number, ...defined({ outcome: state.outcome }) });
    }
    // The end of a run comes to the one that has begun it.
    if (state.running === undefined && !isNews() && workflowInfo().continueAsNewSuggested) {
      const told = await reports.stop();
      if (!isNews()) await continueAsNew<typeof jobGroup>(state, told);
      reports.resume();
    }
  }
}

/** It comes from outside: what cannot be read is left out, and said. */
function readVersion(body: JobVersion): Heard[] {
  const atMs = Date.parse(body?.at);
  if (
    typeof body?.commit === 'string' &&
    COMMIT.test(body.commit) &&
    !Number.isNaN(atMs) &&
    typeof body.job === 'object'
  ) {
    return [
      {
        event: {
          kind: 'asked',
          version: { commit: body.commit, atMs },
          again: body.again === true,
        },
        job: body.job,
        ...defined({ turn: readTurn(body.turn) }),
      },
    ];
  }
  log.warn(
    'A version was left out: it needs commit (at most 64 letters and digits), at (ISO 8601) and job',
    { at: body?.at },
  );
  return [];
}

function readTurn(turn: JobVersion['turn']): JobTurn | undefined {
  return typeof turn?.definition === 'string' && typeof turn.number === 'number' ? turn : undefined;
}

/** Without this word it looks for itself, sooner or later. */
async function tellDefinition(definition: string, news: TurnEndedNews): Promise<void> {
  try {
    await getExternalWorkflowHandle(definition).signal(turnEndedSignal, news);
  } catch (error) {
    log.info('The declared job was not told that nothing runs any more', {
      definition,
      why: String(error),
    });
  }
}

/** Its input is checked by the job itself. @param ended - told once, when nothing of the run is left */
async function start(
  workflowId: string,
  commit: string,
  job: JobInput | undefined,
  ended: (end: RunEnd) => void,
): Promise<ChildWorkflowHandle<(input: JobInput) => Promise<JobResult>> | undefined> {
  try {
    const run = await startChild<(input: JobInput) => Promise<JobResult>>(JOB_WORKFLOW, {
      workflowId,
      args: [job as JobInput],
      // Post runs, whatever becomes of the group.
      parentClosePolicy: ParentClosePolicy.ABANDON,
      staticSummary: commit,
    });
    void run.result().then(ended, (error: unknown) => ended(withoutVerdict(error)));
    return run;
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    log.warn('A run of this id is under way already: it is not one of this group', { workflowId });
    ended({
      outcome: 'errored',
      message: `${workflowId} runs already, and is not of this group.`,
      steps: [],
    });
    return undefined;
  }
}

/** It was cancelled, terminated, or refused. */
function withoutVerdict(error: unknown): RunEnd {
  const cause = error instanceof ChildWorkflowFailure ? error.cause : undefined;
  const message = cause?.message ?? String(error);
  return cause instanceof CancelledFailure
    ? { outcome: 'aborted', cause: 'cancelled', message, steps: [] }
    : { outcome: 'errored', message: `The job gave no verdict: ${message}`, steps: [] };
}

async function supersede(
  run: ChildWorkflowHandle<(input: JobInput) => Promise<JobResult>> | undefined,
): Promise<void> {
  try {
    await run?.signal(cancelSignal, {
      mode: 'stop',
      by: 'superseded',
      reason: 'a newer version has come',
    });
  } catch (error) {
    log.info('The older run was not told of the newer version: it has ended', {
      run: run?.workflowId,
      why: String(error),
    });
  }
}

function statusOf(
  group: string,
  { generation, commit, running, waits, outcome }: GroupState,
): JobGroupStatus {
  return {
    generation,
    waits,
    ...defined({
      commit,
      outcome,
      running: running && {
        workflowId: groupedJobId(group, running.generation),
        superseded: running.superseded,
      },
    }),
  };
}
