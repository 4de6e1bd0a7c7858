/**
 * Reads the facts of a job or run: what the sets of the task queue know, and which set serves it.
 */
import pMap from 'p-map';
import { normalizeLabels } from '../../activities/ciServers/normalizeLabels.ts';
import { listRoutingInfo } from '../../activities/runnerSet/listRoutingInfo.ts';
import { withNormalizedLabels } from '../../activities/runnerSet/normalizedRouting.ts';
import {
  setJobsQuery,
  type SetJobsRequest,
  type SetJobStatus,
  type SetRoutingInfo,
} from '../../core/contract/index.ts';
import { scopeHolds } from '../../core/domain/ciServer.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import {
  runnerWorkflowIdFromName,
  setNameFromRunnerName,
} from '../../core/domain/setRunnerNames.ts';
import type {
  JobFacts,
  JobLabels,
  JobQuestion,
  KnownJob,
  RunFacts,
  RunnerFacts,
  SetFacts,
} from '../../core/why/facts.ts';
import { currentRecord, recordsIn, servingSet } from '../../core/why/servingSet.ts';
import { querySet } from '../set/setClient.ts';
import type { Session } from '../shared/session.ts';
import { readRunner } from './readRunner.ts';
import { readSet } from './readSet.ts';
import type { Subject } from './subject.ts';
import { unlessMissing } from './unlessMissing.ts';

type Env = Readonly<Record<string, string | undefined>>;
type Routing = ReadonlyMap<string, SetRoutingInfo | undefined>;

/** Maximum number of sets that are queried concurrently. */
const AT_ONCE = 20;
/**
 * Number of sets without a response after which the rest is not queried, because no worker runs.
 */
const MAX_SILENT = 40;
/** Maximum number of sets that are explained. */
const MAX_EXPLAINED = 3;
const LIST_TIMEOUT_MS = 60_000;

/**
 * Reads the facts of a job.
 * @throws CliError `unreachable`, `usage`
 */
export async function readJob(
  session: Session,
  env: Env,
  { jobId, repository: given, labels }: Extract<Subject, { kind: 'job' }>,
): Promise<JobFacts> {
  const routing = await listSets(session, given);
  const { known: found, silent } = await queryJobs(session, [...routing.keys()], { jobId });
  const known = recordsIn(found, given);
  const record = currentRecord(known)?.job;
  const question: JobQuestion = {
    jobId,
    known,
    ...routable(routing),
    ...omitUndefined({
      repository: given ?? record?.repository,
      labels: labels && jobLabels(labels),
    }),
  };
  const served = servingSet(question);
  return {
    ...question,
    silentSets: silent.length,
    unanswered: known.length > 0 ? [] : await readSets(session, env, silent),
    ...omitUndefined({
      servedBy: served,
      set: served && (await unlessMissing(readSet(session, env, served.id))),
      runner: await readRunnerOf(session, env, record),
    }),
  };
}

/**
 * Reads the facts of a run.
 * @throws CliError `unreachable`, `usage`
 */
export async function readRun(
  session: Session,
  env: Env,
  { runId, repository }: Extract<Subject, { kind: 'run' }>,
): Promise<RunFacts> {
  const routing = await listSets(session, repository);
  const { known, silent } = await queryJobs(session, [...routing.keys()], { repository, runId });
  const queued = known.filter(({ job }) => job.state === 'queued');
  const waiting = [...new Set(queued.map(({ set }) => set))];
  return {
    runId,
    repository,
    known,
    sets: await readSets(session, env, waiting),
    unreadSets: Math.max(0, waiting.length - MAX_EXPLAINED),
    silentSets: silent.length,
    unanswered: await readSets(session, env, silent),
  };
}

/** Lists the running sets of the task queue that may serve jobs of the repository. */
async function listSets(session: Session, repository: string | undefined): Promise<Routing> {
  const { taskQueue } = session.settings;
  const all = await session.call(async (client) => await listRoutingInfo(client, taskQueue), {
    timeoutMs: LIST_TIMEOUT_MS,
  });
  const mayServe = (routing: SetRoutingInfo | undefined): boolean =>
    routing === undefined ||
    repository === undefined ||
    scopeHolds({ kind: routing.scopeKind, name: routing.scope }, repository);
  // Sets of plain commands serve no jobs. The others are compared with an unknown job.
  const serving = [...all].filter(([, routing]) => routing?.scope !== '');
  const inScope = serving.filter(([, routing]) => mayServe(routing));
  return new Map(inScope.length > 0 ? inScope : serving);
}

function routable(routing: Routing): Pick<JobQuestion, 'sets' | 'unknownSets'> {
  const entries = [...routing];
  return {
    sets: entries.flatMap(([workflowId, one]) =>
      one === undefined ? [] : [{ workflowId, routing: normalized(one) }],
    ),
    unknownSets: entries.flatMap(([workflowId, one]) => (one === undefined ? [workflowId] : [])),
  };
}

const normalized = (routing: SetRoutingInfo): SetRoutingInfo =>
  routing.ciServer === undefined
    ? { ...routing, labels: normalizeLabels('github', routing.labels) }
    : withNormalizedLabels(routing);

const jobLabels = (given: readonly string[]): JobLabels => ({
  given,
  normalized: {
    github: normalizeLabels('github', given),
    gitea: normalizeLabels('gitea', given),
  },
});

/**
 * Queries the sets for the jobs that they know.
 * @returns the workflow IDs of sets without a response
 */
async function queryJobs(
  session: Session,
  sets: readonly string[],
  request: SetJobsRequest,
): Promise<{ known: KnownJob[]; silent: string[] }> {
  const silent: string[] = [];
  const answers = await pMap(
    sets,
    async (set) => {
      const jobs =
        silent.length < MAX_SILENT ? await queryJobsOf(session, set, request) : undefined;
      if (jobs === undefined) silent.push(set);
      return (jobs ?? []).map((job) => ({ set, job }));
    },
    { concurrency: AT_ONCE },
  );
  return { known: answers.flat(), silent };
}

async function queryJobsOf(
  session: Session,
  set: string,
  request: SetJobsRequest,
): Promise<SetJobStatus[] | undefined> {
  return await unlessMissing(querySet(session, set, setJobsQuery.name, request));
}

async function readSets(session: Session, env: Env, ids: readonly string[]): Promise<SetFacts[]> {
  const read = await pMap(
    ids.slice(0, MAX_EXPLAINED),
    async (id) => await unlessMissing(readSet(session, env, id)),
  );
  return read.filter((each) => each !== undefined);
}

/** Reads the runner of the job, if it belongs to a set. */
async function readRunnerOf(
  session: Session,
  env: Env,
  record: SetJobStatus | undefined,
): Promise<RunnerFacts | undefined> {
  const { runnerName = '', state } = record ?? {};
  const id = runnerWorkflowIdFromName(setNameFromRunnerName(runnerName) ?? '', runnerName);
  if (state !== 'assigned' || id === undefined) return undefined;
  return await unlessMissing(readRunner(session, env, id));
}
