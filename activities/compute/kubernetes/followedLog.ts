/**
 * FOLLOWED LOGS of containers, over several streams.
 *
 * What: when a stream ends and the container has not, the log is opened again where it was left.
 *
 * Why: load balancers end streams that are silent for minutes, and a restart of the kubelet or of
 * the API server ends all. A log that stops there looks complete.
 *
 * How: the kubelet puts a timestamp before each line, in a format of fixed width. The next stream
 * starts at the last timestamp, and lines that were read before are skipped. A line without its
 * newline is read again, because the stream may have ended within it.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { LineSplitter } from '../../../core/domain/lineSplitter.ts';

/** Stream of a container's log, whose lines begin with timestamps. `undefined`: there is no log. */
type LogStream = AsyncIterable<Uint8Array> | undefined;

/** Access to the log of one container. */
export interface LogSource {
  /**
   * Opens a stream.
   * @param sinceTime - timestamp at which it begins
   * @param follow - whether it continues until the container has ended
   */
  open(sinceTime: string, follow: boolean): Promise<LogStream>;
  /** Returns whether the container has ended, or its pod does not exist. */
  hasEnded(): Promise<boolean>;
}

/** Time to wait before the log is opened again (ms). */
const REOPEN_MS = 1_000;
/** A line with its timestamp. The kubelet's own messages have none. */
const STAMPED = /^(\d{4}-\d\d-\d\dT\S+) (.*)$/s;

/**
 * Returns the log without timestamps, until the container has ended.
 * @param first - followed stream from which the log is read first
 * @param signal - ends the log, without an error
 * @throws the errors of the source
 */
export async function* followLog(
  first: AsyncIterable<Uint8Array>,
  source: LogSource,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const position = new LogPosition();
  let stream: LogStream = first;
  let isLast = false;
  while (stream !== undefined) {
    yield* position.newLines(stream, isLast);
    if (isLast || signal.aborted) return;
    try {
      isLast = await source.hasEnded();
      if (!isLast) await delay(REOPEN_MS, undefined, { signal });
      stream = await source.open(position.time, !isLast);
    } catch (error) {
      if (signal.aborted) return;
      throw error;
    }
  }
}

/** Timestamp of the last line that was read, and the number of lines with this timestamp. */
class LogPosition {
  time = '';
  #count = 0;

  /**
   * Returns the lines of a stream that follow this position, and moves it.
   * @param isLast - whether a last line without a newline is complete
   */
  async *newLines(stream: AsyncIterable<Uint8Array>, isLast: boolean): AsyncGenerator<Uint8Array> {
    const splitter = new LineSplitter();
    let same = 0;
    const isNew = (time: string): boolean =>
      time > this.time || (time === this.time && ++same > this.#count);
    for await (const chunk of stream)
      for (const line of splitter.push(chunk)) yield* this.#take(`${line}\n`, isNew);
    const rest = splitter.end();
    if (isLast && rest !== '') yield* this.#take(rest, isNew);
  }

  *#take(line: string, isNew: (time: string) => boolean): Generator<Uint8Array> {
    const [, time, text] = STAMPED.exec(line) ?? [];
    if (time === undefined || text === undefined) return yield Buffer.from(line);
    if (!isNew(time)) return;
    this.#count = time === this.time ? this.#count + 1 : 1;
    this.time = time;
    yield Buffer.from(text);
  }
}
