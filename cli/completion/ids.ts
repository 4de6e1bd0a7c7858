/** Reads IDs and names from Temporal for shell completion. */
import { setTimeout as delay } from 'node:timers/promises';
import { OPEN_FILTER } from '../../core/domain/workflowStatus.ts';
import { RUNNER_SET_WORKFLOW } from '../../core/contract/index.ts';
import { selectJobs } from '../job/listJobs.ts';
import { selectRunners } from '../runner/listRunners.ts';
import { nameOf } from '../set/setClient.ts';
import { Session } from '../shared/session.ts';
import type { Candidate, Kind } from './candidates.ts';

/** Timeout (ms). The shell waits for the result while a line is typed. */
const TIMEOUT_MS = 2_000;
const MOST = 200;

/**
 * Returns the IDs of objects, or none if Temporal does not answer soon: a shell cannot show an
 * error while a line is typed.
 */
export async function findIds(
  kind: Kind,
  flags: Readonly<Record<string, string>>,
  env: Readonly<Record<string, string | undefined>>,
): Promise<readonly Candidate[]> {
  return await Promise.race([ask(kind, flags, env).catch(() => []), delay(TIMEOUT_MS, [])]);
}

async function ask(
  kind: Kind,
  flags: Readonly<Record<string, string>>,
  env: Readonly<Record<string, string | undefined>>,
): Promise<Candidate[]> {
  const session = await Session.open(flags, env);
  try {
    if (kind === 'set') return await setNames(session);
    const { rows } =
      kind === 'runner'
        ? await selectRunners(session, {}, MOST)
        : await selectJobs(session, {}, MOST);
    return rows.map(({ id, phase = '' }) => ({ value: id, description: phase }));
  } finally {
    await session.close();
  }
}

async function setNames(session: Session): Promise<Candidate[]> {
  return await session.call(async (client) => {
    const names: Candidate[] = [];
    for await (const { workflowId } of client.workflow.list({
      query: `WorkflowType = "${RUNNER_SET_WORKFLOW}" AND ${OPEN_FILTER}`,
      pageSize: MOST,
    }))
      if (names.push({ value: nameOf(workflowId), description: '' }) === MOST) break;
    return names;
  });
}
