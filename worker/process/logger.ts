/** Log of the worker, written with pino. */
import { pino, stdSerializers, type DestinationStream, type Logger } from 'pino';
import { escapeControlCharacters } from '../../core/domain/displayText.ts';

/** Level and format of the log. */
export interface LogOptions {
  readonly level: string;
  readonly format: 'json' | 'text';
}

/**
 * Creates the logger of a process.
 * @param destination - @default standard output, written synchronously so that the last line before
 * an exit is not lost
 */
export function createLogger(
  options: LogOptions,
  destination: DestinationStream = pino.destination({ dest: 1, sync: true }),
): Logger {
  const form = options.format === 'text' ? asText : (line: string): string => line.trimEnd();
  // Escapes control characters, so that text from runners and servers cannot forge lines or send
  // terminal sequences.
  const target = {
    write: (line: string) => destination.write(`${escapeControlCharacters(form(line))}\n`),
  };
  return pino(
    {
      level: options.level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: stdSerializers.err },
    },
    target,
  );
}

/** Formats a line as `12:34:56 INFO  message key=value`. */
function asText(line: string): string {
  const { level, time, msg, ...fields } = JSON.parse(line) as {
    level: string;
    time: string;
    msg?: string;
  };
  const rest = Object.entries(fields).map(
    ([key, value]) => ` ${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  );
  return `${time.slice(11, 19)} ${level.toUpperCase().padEnd(5)} ${msg ?? ''}${rest.join('')}`;
}
