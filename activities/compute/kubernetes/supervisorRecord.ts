/** The supervisor's termination message, as docs/supervisor.md gives it. Pure. */
import { defined } from '../../../core/defined.ts';
import { STOP_REASONS, type SupervisorRecord } from '../../../core/domain/pod.ts';

const JOBS = ['none', 'running', 'interrupted', 'done'] as const;

/** `undefined` when the text is somebody else's message. What is not known of it is left out: it may come from a newer version, or a job. */
export function supervisorRecord(message: string | undefined): SupervisorRecord | undefined {
  const fields = parseObject(message);
  if (fields === undefined || typeof fields['exitCode'] !== 'number' || !('reason' in fields)) return undefined;
  return defined({ reason: STOP_REASONS.find((known) => known === fields['reason']), job: JOBS.find((known) => known === fields['job']) });
}

function parseObject(text: string | undefined): Readonly<Record<string, unknown>> | undefined {
  if (text === undefined || !text.startsWith('{')) return undefined;
  try {
    return JSON.parse(text) as Readonly<Record<string, unknown>>;
  } catch {
    return undefined; // cut off, or not ours
  }
}
