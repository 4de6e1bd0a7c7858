import { existsSync } from 'node:fs';
import type { EndRecord } from '../signals/actions.ts';
import type { Pending } from '../process/pending.ts';
import type { Options } from '../settings/options.ts';
import type { Log } from './eventLog.ts';
import {
  markerText,
  writeEndRecord,
  writeTerminationMessage,
  type EndRecordFile,
} from './marker.ts';

/** Path at which the kubelet reads a container's termination message. */
const TERMINATION_LOG = '/dev/termination-log';

/** Writes the start and the end of the command to the files that others read. */
export class EndRecorder {
  readonly #options: Pick<Options, 'marker' | 'terminationLog' | 'startFile'>;
  readonly #pending: Pending;
  readonly #log: Log;
  #startNoted: Promise<void> = Promise.resolve();
  /** Record that was written, and whether it says that the log is truncated. */
  #recorded: { readonly verdict: EndRecord; readonly logTruncated: boolean } | undefined;

  constructor(
    options: Pick<Options, 'marker' | 'terminationLog' | 'startFile'>,
    pending: Pending,
    log: Log,
  ) {
    this.#options = options;
    this.#pending = pending;
    this.#log = log;
  }

  /** Notes the start of the command. */
  noteStart(startedAt: string): void {
    const { startFile } = this.#options;
    if (startFile !== undefined)
      this.#startNoted = this.#reportFailure(
        'start note',
        writeEndRecord(startFile, `${JSON.stringify({ startedAt })}\n`, this.#pending),
      );
  }

  /** Writes the record. A file that cannot be written is logged. */
  async record(
    verdict: EndRecord,
    details: Pick<EndRecordFile, 'startedAt' | 'endedAt' | 'job' | 'logTruncated'>,
  ): Promise<void> {
    this.#recorded = { verdict, logTruncated: details.logTruncated === true };
    const { marker, terminationLog = existsSync(TERMINATION_LOG) ? TERMINATION_LOG : undefined } =
      this.#options;
    const text = markerText({ ...verdict, ...details });
    const written = [this.#startNoted];
    if (marker !== undefined)
      written.push(this.#reportFailure('marker', writeEndRecord(marker, text, this.#pending)));
    if (terminationLog !== undefined)
      written.push(
        this.#reportFailure(
          'termination message',
          writeTerminationMessage(terminationLog, text, this.#pending),
        ),
      );
    await Promise.all(written);
  }

  /** Record that was written before the log was truncated, if there is one. */
  get withoutTruncation(): EndRecord | undefined {
    return this.#recorded?.logTruncated === false ? this.#recorded.verdict : undefined;
  }

  async #reportFailure(what: string, write: Promise<void>): Promise<void> {
    await write.catch((error: unknown) =>
      this.#log('error', `failed to write the ${what}: ${(error as Error).message}`),
    );
  }
}
