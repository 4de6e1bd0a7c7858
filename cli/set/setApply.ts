/** Implements `holdfast set apply`, which starts or changes sets according to a file. */
import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import pMap from 'p-map';
import {
  setDeclarationQuery,
  setWorkflowId,
  type RunnerSetInput,
} from '../../core/contract/index.ts';
import { CliError, EXIT } from '../shared/exit.ts';
import type { Output } from '../shared/output.ts';
import { pauseInfo } from '../../worker/temporal/pauseInfo.ts';
import type { Session } from '../shared/session.ts';
import { setSummary } from '../../worker/temporal/setStart.ts';
import type { AdmittedDocument } from './setAdmission.ts';
import {
  querySet,
  queryAdmittedSet,
  describeSetById,
  pausedError,
  setError,
  runSetCommand,
} from './setClient.ts';
import { changeText, diffSets, startsRollout, type SetChange } from '../../core/domain/setDiff.ts';
import { implicitLabelsText, missingImplicitLabels } from '../../core/domain/implicitLabels.ts';
import { isOpen } from '../../core/domain/workflowStatus.ts';
import { getSetEnd } from './setEnd.ts';
import { countText, sizeText, startSet } from './setStart.ts';
import { errorMessage } from '../../core/domain/errorMessage.ts';

/** Planned change for one document, and its result. */
interface Application {
  readonly name: string;
  readonly id: string;
  /** Change to make. Absent if it could not be determined. */
  action?: 'start' | 'change' | 'none';
  changes: readonly SetChange[];
  /** Whether the template differs, so that the runners are replaced. */
  rollout: boolean;
  result?: 'started' | 'changed' | 'unchanged' | 'failed';
  error?: string;
  /** Labels that jobs often request and the template lacks. */
  warning?: string;
  desired?: number;
  ui?: string;
}

/** Maximum number of concurrent requests. */
const AT_ONCE = 10;

/**
 * Shows the changes, and makes them without `dryRun`. The failure of one set does not prevent the
 * others.
 * @returns the exit status
 * @throws CliError `usage`, `unreachable` before anything was applied
 */
export async function applySets(
  session: Session,
  output: Output,
  documents: readonly AdmittedDocument[],
  { dryRun }: { dryRun: boolean },
): Promise<number> {
  const pairs = documents.map((document) => ({ document, set: toApplication(document) }));
  await pMap(
    pairs,
    async ({ document, set }) =>
      await collect(set, async () => await plan(session, document, set), [
        'failed',
        'not_found',
        'conflict',
      ]),
    { concurrency: AT_ONCE },
  );
  for (const { document, set } of pairs)
    for (const line of planLines(set, document)) output.line(line);
  for (const { set } of pairs) if (set.warning !== undefined) output.note('labels', set.warning);
  if (!dryRun) {
    const planned = pairs.filter(({ set }) => set.result !== 'failed');
    await pMap(
      planned,
      async ({ document, set }) =>
        await collect(set, async () => await apply(session, document, set)),
      { concurrency: AT_ONCE },
    );
    for (const { set } of pairs) output.line(resultLine(set));
  }
  output.result({ dryRun, sets: pairs.map(({ set }) => set) }, []);
  return pairs.some(({ set }) => set.result === 'failed') ? EXIT.failed : EXIT.ok;
}

function toApplication({ input: { name }, spec }: AdmittedDocument): Application {
  const missing = missingImplicitLabels(spec.ciServer, spec.labels);
  return {
    name,
    id: setWorkflowId(name),
    changes: [],
    rollout: false,
    ...(missing.length === 0 ? {} : { warning: implicitLabelsText(name, missing) }),
  };
}

/**
 * Stores a failure in the set that it is about.
 * @param codes - codes of errors that are about this set; others are thrown.
 * @default all codes
 */
async function collect(
  set: Application,
  work: () => Promise<void>,
  codes?: readonly string[],
): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (codes !== undefined && !(error instanceof CliError && codes.includes(error.code)))
      throw error;
    Object.assign(set, {
      result: 'failed',
      error: errorMessage(error),
    });
  }
}

async function plan(
  session: Session,
  { input }: AdmittedDocument,
  set: Application,
): Promise<void> {
  const { name, id } = set;
  const found = await describeSetById(session, id);
  if (found === undefined || !isOpen(found.status)) {
    set.action = 'start';
    return;
  }
  const paused = pauseInfo(found);
  if (paused !== undefined) throw pausedError(id, paused);
  if (found.taskQueue !== session.settings.taskQueue) {
    throw new CliError(
      'conflict',
      `set ${name} runs on task queue ${found.taskQueue}, not on ${session.settings.taskQueue}; add --task-queue ${found.taskQueue}, or give the set another name`,
    );
  }
  const [before, status] = await Promise.all([
    querySet<RunnerSetInput>(session, id, setDeclarationQuery.name),
    queryAdmittedSet(session, id, { max: 0 }),
  ]);
  if (before === undefined || status === undefined) {
    throw new CliError(
      'failed',
      `set ${name}: no worker answered within 3 s, so its state is unknown; check that a worker runs on task queue ${found.taskQueue} ("holdfast worker")`,
    );
  }
  if (status.deleting !== undefined)
    throw new CliError(
      'conflict',
      `set ${name} is being deleted; apply again when it has ended ("holdfast set delete ${name} --wait" waits for it)`,
    );
  set.changes = diffSets(before, input);
  set.rollout = startsRollout(set.changes);
  set.action = set.changes.length === 0 ? 'none' : 'change';
}

async function apply(
  session: Session,
  { input, spec }: AdmittedDocument,
  set: Application,
): Promise<void> {
  if (set.action === 'none') {
    set.result = 'unchanged';
    return;
  }
  const ui = session.link(set.id, undefined);
  if (ui !== undefined) set.ui = ui;
  try {
    if (set.action === 'change') {
      set.desired = (
        await runSetCommand(
          session,
          { workflowId: set.id, taskQueue: session.settings.taskQueue },
          { command: 'apply', declaration: input },
        )
      ).desired;
      set.result = 'changed';
      return;
    }
    const runId = await startSet(session, input, spec);
    await confirmStart(session, set, runId);
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError)
      throw new CliError(
        'conflict',
        `set ${set.name} was started in the meantime; apply again to see the changes`,
        { cause: error },
      );
    const known = setError(error, session, set.id);
    if (known.code === 'not_found' && set.action === 'change')
      throw new CliError(
        'not_found',
        `set ${set.name} ended in the meantime; apply again to start it`,
        {
          cause: error,
        },
      );
    throw known;
  }
}

/**
 * Checks that a worker accepts the set. It may reject settings that only the worker knows, such as
 * an unknown credential or a timeout beyond a limit.
 */
async function confirmStart(session: Session, set: Application, runId: string): Promise<void> {
  const status = await queryAdmittedSet(session, set.id, { max: 0 });
  if (status === undefined) {
    const end = await getSetEnd(session, set.id, runId);
    if (end !== undefined)
      throw new CliError('failed', `set ${set.name} ended immediately: ${end.message}`);
  } else set.desired = status.desired;
  set.result = 'started';
}

function planLines(set: Application, { spec, input }: AdmittedDocument): string[] {
  if (set.action === 'start')
    return [`+ ${set.name}: new, ${sizeText(input)}, ${setSummary(spec)}`];
  if (set.action === 'none') return [`= ${set.name}: unchanged`];
  if (set.action === undefined) return [`! ${set.name}: ${set.error}`];
  return [
    `~ ${set.name}: ${set.rollout ? 'changed, its runners are replaced because the template differs' : 'changed'}`,
    ...set.changes.map((change) => `    ${changeText(change)}`),
  ];
}

function resultLine({ name, result, error, desired, ui }: Application): string {
  if (result === 'failed') return `${name}: not applied: ${error}`;
  if (result === 'unchanged') return `${name}: unchanged`;
  const wanted =
    desired === undefined
      ? '; not yet processed by a worker'
      : `, ${countText(desired)} wanted now`;
  return `${name}: ${result}${wanted}${ui === undefined ? '' : `  ${ui}`}`;
}
