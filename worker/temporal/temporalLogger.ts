import { ApplicationFailure } from '@temporalio/common';
import {
  DefaultLogger,
  type LogEntry,
  type LogLevel,
  type Logger as TemporalLogger,
} from '@temporalio/worker';
import type { Logger } from 'pino';
import { truncate } from '../../core/domain/displayText.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';

/** Maximum length of a failure's message (characters). Temporal has the whole message. */
const MAX_MESSAGE = 500;

const PINO_METHOD = {
  TRACE: 'trace',
  DEBUG: 'debug',
  INFO: 'info',
  WARN: 'warn',
  ERROR: 'error',
} as const satisfies Record<LogLevel, string>;

/**
 * Returns a logger for the Temporal SDK (Workers, workflows, activities and its native part) that
 * writes to the log of the process.
 */
export function temporalLogger(logger: Logger): TemporalLogger {
  const child = logger.child({ component: 'temporal' });
  return new DefaultLogger('TRACE', ({ level, message, meta }: LogEntry) => {
    const method = isNoise(level, message, meta) ? 'debug' : PINO_METHOD[level];
    child[method](logFields(meta ?? {}), message);
  });
}

/**
 * Returns the fields of a line. For a failure that an activity or a workflow declares, they are its
 * type, attempt and message: its stack, its causes and the task's token add nothing. Any other
 * error is a defect, and keeps all fields.
 */
function logFields({ error, ...fields }: Record<string | symbol, unknown>): object {
  if (error === undefined) return fields;
  if (!(error instanceof ApplicationFailure)) return { ...fields, err: error };
  const { activityType, workflowType, workflowId, attempt, durationMs } = fields;
  return omitUndefined({
    activityType,
    workflowType: activityType === undefined ? workflowType : undefined,
    workflowId,
    attempt,
    durationMs,
    failure: error.type ?? undefined,
    error: truncate(error.message, MAX_MESSAGE),
  });
}

/**
 * Whether a line is only useful for debugging: state changes of Workers, the report of the bundler,
 * and the note that a Worker runs no workflows, which is intended for Workers of calls to CI
 * servers.
 */
function isNoise(level: LogLevel, message: string, meta: LogEntry['meta']): boolean {
  return (
    meta?.['sdkComponent'] === 'worker' &&
    (level === 'INFO' || message.startsWith('No workflows registered'))
  );
}
