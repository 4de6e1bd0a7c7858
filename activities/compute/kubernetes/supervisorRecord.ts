/** Parses the supervisor's termination message, described in docs/supervisor.md. Pure. */
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import { STOP_REASONS, type SupervisorRecord } from '../../../core/domain/pod.ts';

const JOBS = ['none', 'running', 'interrupted', 'completed'] as const;

/** Exit of the runner in the record. */
export interface SupervisorExit {
  readonly exitCode: number;
  /** Error if the command could not be started. */
  readonly error?: string;
  readonly record: SupervisorRecord;
}

/**
 * Parses a termination message. Unknown values are dropped, because the message may come from a
 * newer version or from a job.
 * @returns `undefined` if the message is not from the supervisor
 */
export function parseSupervisorRecord(message: string | undefined): SupervisorExit | undefined {
  const fields = parseObject(message);
  if (fields === undefined || !('reason' in fields)) return undefined;
  const { exitCode, error } = fields;
  if (typeof exitCode !== 'number' || !Number.isInteger(exitCode) || exitCode < 0 || exitCode > 255)
    return undefined;
  const record = omitUndefined({
    reason: STOP_REASONS.find((known) => known === fields['reason']),
    job: JOBS.find((known) => known === fields['job']),
  });
  return {
    exitCode,
    record,
    ...omitUndefined({ error: typeof error === 'string' ? error : undefined }),
  };
}

function parseObject(text: string | undefined): Readonly<Record<string, unknown>> | undefined {
  if (text === undefined || !text.startsWith('{')) return undefined;
  try {
    return JSON.parse(text) as Readonly<Record<string, unknown>>;
  } catch {
    return undefined; // truncated, or not a record of the supervisor
  }
}
