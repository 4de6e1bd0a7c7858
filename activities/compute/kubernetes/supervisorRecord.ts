/** The supervisor's termination message, as docs/supervisor.md gives it. Pure. */
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import { STOP_REASONS, type SupervisorRecord } from '../../../core/domain/pod.ts';

const JOBS = ['none', 'running', 'interrupted', 'completed'] as const;

/** What the record says of the end. */
export interface SupervisorExit {
  readonly exitCode: number;
  /** Why the command could not be started. */
  readonly error?: string;
  readonly record: SupervisorRecord;
}

/** `undefined` when the text is somebody else's message. What is not known of it is left out: it may come from a newer version, or a job. */
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
    return undefined; // cut off, or not ours
  }
}
