/** `holdfast job apply`: brings declared jobs to what a file says. */
import pMap from 'p-map';
import {
  JOB_DEFINITION_WORKFLOW,
  SEARCH_ATTRIBUTES,
  applyDefinitionSignal,
  jobDeclarationQuery,
  jobDefinitionId,
  type JobDefinitionInput,
  type JobDefinitionStatus,
} from '../../core/contract/index.ts';
import { fairnessKey } from '../../core/domain/fairnessKey.ts';
import { changeText, diffDeclarations, type SetChange } from '../../core/domain/setDiff.ts';
import type { Session } from '../shared/session.ts';
import { workflowSummary } from '../../core/domain/workflowSummary.ts';
import { CliError, EXIT } from '../shared/exit.ts';
import type { Output } from '../shared/output.ts';
import type { AdmittedDefinitionDocument } from './definitionAdmission.ts';
import { askDefinition, describeDefinitionById, untilTaken } from './definitionClient.ts';

/** What is to be done for one document, and what became of it. */
interface Application {
  readonly name: string;
  readonly id: string;
  /** Absent: it could not be found out. */
  action?: 'start' | 'change' | 'none';
  changes: readonly SetChange[];
  /** `sent`: no worker has looked at it yet. */
  result?: 'applied' | 'sent' | 'unchanged' | 'failed';
  error?: string;
  ui?: string;
}

/** Requests under way at once. */
const AT_ONCE = 10;

/**
 * Shows what would change, and without `dryRun` does it. One job's failure does not keep the others from being applied.
 * @returns the status to exit with
 * @throws CliError `usage`, `unreachable` before anything was applied
 */
export async function applyDefinitions(
  session: Session,
  output: Output,
  documents: readonly AdmittedDefinitionDocument[],
  { dryRun }: { dryRun: boolean },
): Promise<number> {
  const pairs = documents.map(({ input }) => ({
    input,
    job: {
      name: `${input.repository}:${input.name}`,
      id: jobDefinitionId(input.repository, input.name),
      changes: [],
    } as Application,
    before: undefined as JobDefinitionStatus | undefined,
  }));
  await pMap(
    pairs,
    async (pair) =>
      await collect(
        pair.job,
        async () => void (pair.before = await plan(session, pair.input, pair.job)),
        ['failed', 'conflict'],
      ),
    { concurrency: AT_ONCE },
  );
  for (const { job } of pairs) for (const line of planLines(job)) output.line(line);
  if (!dryRun) {
    await pMap(
      pairs.filter(({ job }) => job.result !== 'failed'),
      async ({ input, job, before }) =>
        await collect(job, async () => await apply(session, input, job, before)),
      { concurrency: AT_ONCE },
    );
    for (const { job } of pairs) output.line(resultLine(job));
  }
  output.result({ dryRun, jobs: pairs.map(({ job }) => job) }, []);
  return pairs.some(({ job }) => job.result === 'failed') ? EXIT.failed : EXIT.ok;
}

/** Notes a failure with the job it is about. @param codes - those that are about this job; absent: all */
async function collect(
  job: Application,
  work: () => Promise<void>,
  codes?: readonly string[],
): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (codes !== undefined && !(error instanceof CliError && codes.includes(error.code)))
      throw error;
    Object.assign(job, {
      result: 'failed',
      error: error instanceof Error ? error.message : String(error),
    });
  }
}

/** @returns how the one that runs is */
async function plan(
  session: Session,
  input: JobDefinitionInput,
  job: Application,
): Promise<JobDefinitionStatus | undefined> {
  const found = await describeDefinitionById(session, job.id);
  if (found?.status.name !== 'RUNNING') {
    job.action = 'start';
    return undefined;
  }
  if (found.taskQueue !== session.settings.taskQueue)
    throw new CliError(
      'conflict',
      `job ${job.name} is declared on task queue ${found.taskQueue}, not on ${session.settings.taskQueue}: give --task-queue ${found.taskQueue}, or the job another name`,
    );
  const status = await askDefinition(session, job.id);
  if (status === undefined)
    throw new CliError(
      'failed',
      `job ${job.name}: no worker answered within 3 s, so what it is now is not known; check that a worker runs on task queue ${found.taskQueue} ("holdfast worker")`,
    );
  const declared = await session.call(
    (client) => client.workflow.getHandle(job.id).query(jobDeclarationQuery),
    { workflowId: job.id },
  );
  job.changes = diffDeclarations(declared ?? {}, input, isEnvironment);
  job.action = job.changes.length === 0 && status.ending === undefined ? 'none' : 'change';
  return status;
}

/** Values of a step's variables. */
const isEnvironment = (field: string): boolean =>
  /^(?:pre|test|post)\.\d+\.env(?:\.|$)/.test(field);

/** By a signal: Temporal keeps it until a worker runs. */
async function apply(
  session: Session,
  input: JobDefinitionInput,
  job: Application,
  before: JobDefinitionStatus | undefined,
): Promise<void> {
  if (job.action === 'none') {
    job.result = 'unchanged';
    return;
  }
  const { name, repository } = input;
  const ui = session.link(job.id, undefined);
  if (ui !== undefined) job.ui = ui;
  await session.call((client) =>
    client.workflow.signalWithStart(JOB_DEFINITION_WORKFLOW, {
      workflowId: job.id,
      taskQueue: session.settings.taskQueue,
      args: [],
      signal: applyDefinitionSignal,
      signalArgs: [input],
      staticSummary: workflowSummary(`declared job ${name} of ${repository}`),
      typedSearchAttributes: [
        { key: SEARCH_ATTRIBUTES.name, value: name },
        { key: SEARCH_ATTRIBUTES.scope, value: repository },
      ],
      priority: { fairnessKey: fairnessKey(repository) },
    }),
  );
  const { generation = 0, refused } = before ?? {};
  const after = await untilTaken(
    session,
    job.id,
    (now) => !now.checking && (now.generation > generation || now.refused?.at !== refused?.at),
  );
  // A worker may refuse what we could not know: a timeout beyond its cap, what its pod policy does not allow.
  if (after !== undefined && after.generation === generation)
    throw new CliError('failed', `job ${job.name} is refused: ${after.refused?.why}`);
  job.result = after === undefined ? 'sent' : 'applied';
}

function planLines({ name, action, changes, error }: Application): string[] {
  if (action === 'start') return [`+ ${name}: new`];
  if (action === 'none') return [`= ${name}: unchanged`];
  if (action === undefined) return [`! ${name}: ${error}`];
  return [`~ ${name}: changed`, ...changes.map((change) => `    ${changeText(change)}`)];
}

function resultLine({ name, result, error, ui }: Application): string {
  const link = ui === undefined ? '' : `  ${ui}`;
  if (result === 'failed') return `${name}: not applied: ${error}`;
  return result === 'sent'
    ? `${name}: sent; no worker has looked at it yet${link}`
    : `${name}: ${result}${link}`;
}
