/**
 * Reads the actions of sweeps on the pods of terminated runners, from the reports of the sweeps and
 * from the deregistrations that they started.
 */
import pMap from 'p-map';
import {
  ORPHANED_POD_MESSAGE,
  type SweepReport,
  type SweepFinding,
} from '../../core/contract/index.ts';
import { repairingSweepsQuery } from '../../core/domain/visibility.ts';
import type { Session } from '../shared/session.ts';
import { CliError } from '../shared/exit.ts';
import type { RunnerRow } from '../shared/runnerRow.ts';

/**
 * Maximum number of reports and histories read concurrently, and maximum number of reports. The
 * newest are read first.
 */
const AT_ONCE = 10;
const MAX_REPORTS = 100;

/**
 * Returns the action of a sweep for each runner with one, by run ID.
 * @throws CliError `unreachable`
 */
export async function sweepResults(
  session: Session,
  runners: readonly RunnerRow[],
): Promise<ReadonlyMap<string, string>> {
  const since = runners.flatMap(({ endedAt }) => endedAt ?? []).toSorted()[0];
  if (since === undefined) return new Map();
  const reports = await reportsSince(session, since);
  const results = await pMap(
    runners,
    async (runner) =>
      reportedReason(runner, reports) ?? (await deregistrationReason(session, runner)),
    { concurrency: AT_ONCE },
  );
  return new Map(
    runners.flatMap(({ runId }, index) =>
      results[index] === undefined ? [] : [[runId, results[index]]],
    ),
  );
}

async function reportsSince(session: Session, since: string): Promise<SweepReport[]> {
  const runs = await session.call(async (client) => {
    const found: { workflowId: string; runId: string }[] = [];
    for await (const run of client.workflow.list({
      query: repairingSweepsQuery(since),
      pageSize: MAX_REPORTS,
    }))
      if (found.push(run) === MAX_REPORTS) break;
    return found;
  });
  const reports = await pMap(
    runs,
    async ({ workflowId, runId }) =>
      await unlessDropped(
        async () =>
          await session.call(
            async (client) =>
              await client.workflow
                .getHandle<() => Promise<SweepReport>>(workflowId, runId)
                .result(),
          ),
      ),
    { concurrency: AT_ONCE },
  );
  return reports.filter((report) => report !== undefined);
}

/**
 * Returns the action from the reports. An earlier runner may have had the same ID, so only later
 * sweeps count.
 */
function reportedReason(
  { id, endedAt = '' }: RunnerRow,
  reports: readonly SweepReport[],
): string | undefined {
  const isIts = ({ kind, status, workflowId }: SweepFinding): boolean =>
    kind === 'orphaned_pod' && status === 'repaired' && workflowId === id;
  return reports
    .filter(({ at }) => at >= endedAt)
    .flatMap(({ findings }) => findings)
    .find(isIts)?.reason;
}

/**
 * Returns the action from the deregistration of the runner. Its reason shows the action also for a
 * standalone sweep, which leaves no report in Temporal.
 */
async function deregistrationReason(
  session: Session,
  { name, endedAt = '' }: RunnerRow,
): Promise<string | undefined> {
  if (name === undefined) return undefined;
  const removal = await unlessDropped(
    async () =>
      await session.call(
        async (client) => await client.workflow.getHandle(`deregistration-${name}`).describe(),
      ),
  );
  const summary = await removal?.staticSummary();
  return removal !== undefined &&
    removal.startTime.toISOString() >= endedAt &&
    summary?.startsWith(ORPHANED_POD_MESSAGE) === true
    ? summary
    : undefined;
}

/**
 * Returns `undefined` for a workflow that Temporal has deleted, which lists may still contain, or
 * that never existed.
 */
async function unlessDropped<T>(ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof CliError && error.code === 'not_found') return undefined;
    throw error;
  }
}
