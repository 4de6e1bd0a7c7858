/** Implements `holdfast runner logs`, and the output of plain commands in `holdfast run`. */
import { SEARCH_ATTRIBUTES } from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { isOpen } from '../../core/domain/workflowStatus.ts';
import { CliError } from '../shared/exit.ts';
import { getResult, sleep } from '../shared/followRunner.ts';
import type { Output } from '../shared/output.ts';
import { queryStatus } from '../shared/runnerRow.ts';
import type { Session } from '../shared/session.ts';
import { RunnerPodLogs } from './podLogs.ts';
import { findRunner, type StartedRunner } from './startRunner.ts';

type Env = Readonly<Record<string, string | undefined>>;

/** Options of `holdfast runner logs`. */
export interface RunnerLogsFlags {
  readonly follow?: boolean;
  /** Number of lines from the end. */
  readonly tail?: number;
}

/** Facts from Temporal about a runner whose log is read. */
interface RunnerFacts {
  readonly workflowId: string;
  readonly firstRunId: string;
  readonly running: boolean;
  /** Whether it is a plain command. */
  readonly isCommand: boolean;
  /** Location of the pods. Absent until a worker has admitted the runner. */
  readonly place?: string;
}

/** Interval between checks of a runner that is not admitted yet, or is followed (ms). */
const ADMISSION_POLL_MS = 100;
const END_POLL_MS = 1_000;

/**
 * Prints the log of a runner: that of its pod while the pod exists, otherwise the last lines that a
 * worker has stored. Ends early if no one reads it any more.
 * @throws CliError `not_found` if there is no log
 */
export async function runnerLogs(
  session: Session,
  output: Output,
  env: Env,
  id: string,
  { follow = false, tail }: RunnerLogsFlags,
): Promise<void> {
  const { workflowId } = await findRunner(session, id);
  const facts = await admitted(session, workflowId, { wait: follow });
  if (facts?.place === undefined)
    throw new CliError(
      'not_found',
      `${workflowId} has no pod yet, because no worker has admitted it; see it with "holdfast runner get ${id}"`,
    );
  const logs = await RunnerPodLogs.open(env, { ...facts, place: facts.place });
  const lines: string[] = [];
  const readerGone = new AbortController();
  const write = (line: string): void => {
    if (output.json) lines.push(line);
    else output.line(line);
    if (output.isReaderGone) readerGone.abort();
  };
  try {
    const attempt = await attemptOf(session, facts);
    const how = { signal: readerGone.signal, ...omitUndefined({ tailLines: tail }) };
    const live = follow
      ? await followLogs(session, logs, facts, attempt, write, how)
      : await logs.print(attempt, write, how);
    const kept = live ? undefined : await logs.readKept(attempt);
    if (!live && kept === undefined)
      throw new CliError('not_found', nothingLeft(logs.podName(attempt), facts, id));
    for (const line of lastLines(kept, tail)) write(line);
    if (output.json)
      output.result({ id: workflowId, pod: logs.podName(attempt), kept: !live, log: lines }, []);
  } catch (error) {
    if (!readerGone.signal.aborted) throw error;
  } finally {
    await logs.close();
  }
}

function nothingLeft(pod: string, { place, running }: RunnerFacts, id: string): string {
  return running
    ? `pod ${pod} has no log in ${place}; see what the runner waits for with "holdfast runner get ${id}"`
    : `pod ${pod} is no longer in ${place}. The last lines of a runner that did not succeed are where HOLDFAST_POD_LOGS of the worker says: in its own log, or in a directory (set HOLDFAST_POD_LOGS to it here)`;
}

function lastLines(text: string | undefined, tail: number | undefined): string[] {
  if (text === undefined) return [];
  const lines = text.replace(/\n$/, '').split('\n');
  return tail === undefined ? lines : lines.slice(-tail);
}

/** Prints the logs until the workflow has ended. */
async function followLogs(
  session: Session,
  logs: RunnerPodLogs,
  { workflowId }: RunnerFacts,
  attempt: number,
  write: (line: string) => void,
  how: { readonly tailLines?: number; readonly signal: AbortSignal },
): Promise<boolean> {
  const ended = new AbortController();
  const printing = logs.follow(attempt, write, { ...how, ended: ended.signal });
  const over = new AbortController();
  const looking = (async () => {
    while (!over.signal.aborted && (await readFacts(session, workflowId)).running)
      await sleep(END_POLL_MS, over.signal);
    ended.abort();
  })();
  try {
    await Promise.race([printing, looking]);
    return await printing;
  } finally {
    over.abort();
    ended.abort();
    await looking.catch(() => undefined);
  }
}

/**
 * Prints the output of a plain command as it is written. Does nothing for a runner of a CI server.
 * @param how.ended - aborted when the runner has ended
 * @returns whether there was output to read; `undefined` for a runner of a CI server
 * @throws CliError or ComputeError if the log cannot be read from this machine
 */
export async function printCommandOutput(
  session: Session,
  env: Env,
  { workflowId }: StartedRunner,
  write: (line: string) => void,
  how: { readonly signal: AbortSignal; readonly ended: AbortSignal },
): Promise<boolean | undefined> {
  const facts = await admitted(session, workflowId, { wait: true, over: how.ended });
  if (facts === undefined || !facts.isCommand || facts.place === undefined) return undefined;
  const logs = await RunnerPodLogs.open(env, { ...facts, place: facts.place });
  try {
    const writeOwn = (line: string): void => {
      if (!isOfSupervisor(line)) write(line);
    };
    return await logs.follow(await attemptOf(session, facts), writeOwn, how);
  } finally {
    await logs.close();
  }
}

/** Returns whether the supervisor wrote a line. It writes to the log of the pod, too. */
const isOfSupervisor = (line: string): boolean => line.startsWith('{"component":"entrypoint",');

/**
 * Returns the facts of a runner after a worker has admitted it.
 * @param wait - whether to wait for that; otherwise returns the current facts
 * @returns `undefined` if the runner ended before, or `over` was aborted
 */
async function admitted(
  session: Session,
  workflowId: string,
  {
    wait,
    over = new AbortController().signal,
  }: { readonly wait: boolean; readonly over?: AbortSignal },
): Promise<RunnerFacts | undefined> {
  for (;;) {
    const facts = await readFacts(session, workflowId);
    if (facts.place !== undefined || !wait) return facts;
    if (!facts.running || over.aborted) return undefined;
    await sleep(ADMISSION_POLL_MS, over);
  }
}

async function readFacts(session: Session, workflowId: string): Promise<RunnerFacts> {
  const { raw, runId, status, type, typedSearchAttributes } = await session.call(
    (client) => client.workflow.getHandle(workflowId).describe(),
    { workflowId },
  );
  if (type !== 'runner')
    throw new CliError('not_found', `${workflowId} is not a runner but a workflow of type ${type}`);
  return {
    workflowId,
    firstRunId: raw.workflowExecutionInfo?.firstRunId || runId,
    running: isOpen(status),
    isCommand: typedSearchAttributes.get(SEARCH_ATTRIBUTES.scope) === undefined,
    ...omitUndefined({ place: typedSearchAttributes.get(SEARCH_ATTRIBUTES.place) }),
  };
}

/** Returns the current attempt, or the last one of a runner that has ended. 1 if it is unknown. */
async function attemptOf(session: Session, facts: RunnerFacts): Promise<number> {
  const known = facts.running
    ? await queryStatus(session, facts.workflowId)
    : await getResult(session, facts.workflowId);
  return known?.attempt ?? 1;
}
