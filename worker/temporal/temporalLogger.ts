import {
  DefaultLogger,
  type LogEntry,
  type LogLevel,
  type Logger as TemporalLogger,
} from '@temporalio/worker';
import type { Logger } from 'pino';

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
    const { error, ...fields } = { error: undefined, ...meta };
    const method = isNoise(level, message, meta) ? 'debug' : PINO_METHOD[level];
    child[method](error === undefined ? fields : { ...fields, err: error }, message);
  });
}

/** State changes of Workers and the bundler's report; and that a Worker for a CI server's calls runs no workflows is as it should be. */
function isNoise(level: LogLevel, message: string, meta: LogEntry['meta']): boolean {
  return (
    meta?.['sdkComponent'] === 'worker' &&
    (level === 'INFO' || message.startsWith('No workflows registered'))
  );
}
