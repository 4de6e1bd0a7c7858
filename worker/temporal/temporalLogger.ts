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

/** Characters of a failure's message: the whole one is in Temporal. */
const MAX_MESSAGE = 500;

const PINO_METHOD = {
  TRACE: 'trace',
  DEBUG: 'debug',
  INFO: 'info',
  WARN: 'warn',
  ERROR: 'error',
} as const satisfies Record<LogLevel, string>;

/** Lets the Temporal SDK (Workers, workflows, activities and its native part) write to the same log. */
export function temporalLogger(logger: Logger): TemporalLogger {
  const child = logger.child({ component: 'temporal' });
  return new DefaultLogger('TRACE', ({ level, message, meta }: LogEntry) => {
    const method = isNoise(level, message, meta) ? 'debug' : PINO_METHOD[level];
    child[method](logFields(meta ?? {}), message);
  });
}

/**
 * Returns the fields of a line. A failure that an activity or a workflow has declared is its type,
 * attempt and message: its stack, its causes and the task's token say nothing more. Any other error
 * is a defect, and keeps everything.
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

/** State changes of Workers and the bundler's report; and that a Worker for a CI server's calls runs no workflows is as it should be. */
function isNoise(level: LogLevel, message: string, meta: LogEntry['meta']): boolean {
  return (
    meta?.['sdkComponent'] === 'worker' &&
    (level === 'INFO' || message.startsWith('No workflows registered'))
  );
}
