/**
 * Stores the files of a step once no process of the step is running, however it ended, and then
 * exits. It runs next to the step, in a separate container.
 */
import { existsSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pRetry from 'p-retry';
import { ObjectRejectedError, type ArtifactStore } from '../activities/artifacts/artifactStore.ts';
import { ARTIFACT_NAMES } from '../core/domain/artifactLayout.ts';
import { formatDuration } from '../core/domain/duration.ts';
import { SharedDirError } from '../supervisor/records/sharedSnapshot.ts';
import { sharedDirSnapshot } from './sharedDirSnapshot.ts';
import { uploadAction } from './uploadDecision.ts';
import { uploadFile, uploadDirectory, type UploadTarget } from './uploadFolder.ts';

/** Options of an upload. */
export interface UploaderOptions {
  /**
   * Directory with the supervisor's records and the step's output: `started.json`, `finished.json`,
   * `build-log.txt`.
   */
  readonly records: string;
  /** Directory with the step's artifacts (ARTIFACT_DIR). */
  readonly artifactDir: string;
  /** Directory with the files for later steps (SHARED_DIR). */
  readonly sharedDir: string;
  /** Port of the step's probes on this host. It is open while the step's supervisor runs. */
  readonly port: number;
  readonly store: ArtifactStore;
  /** Directory of the step in the store, with a trailing slash. */
  readonly destination: string;
  /** Key in the store for the snapshot of SHARED_DIR. */
  readonly sharedKey: string;
  /** Texts to mask: the encodings of the step's secrets (core/domain/secretMasker.ts). */
  readonly secretVariants: readonly string[];
  /** Time limit for the upload, from the end of the step (ms). */
  readonly timeoutMs: number;
  /** Interval between checks of the step (ms). @default 500 */
  readonly pollMs?: number;
}

/** Result of an upload. `nothing`: the step never started. */
export interface UploadRecord {
  readonly end: 'stored' | 'nothing';
  /**
   * Paths in ARTIFACT_DIR that are not readable or not files, or that the store never accepts. The
   * latter includes `../build-log.txt`.
   */
  readonly skippedFiles: readonly string[];
  /** Reason why the next step does not receive the contents of SHARED_DIR. */
  readonly sharedDirFault?: string;
}

/**
 * Waits for the end of the step and stores its files.
 *
 * @param terminationRequested - aborted by a signal, which has no other effect
 * @throws Error if the store did not accept everything within the timeout
 */
export async function runUploader(
  options: UploaderOptions,
  terminationRequested: AbortSignal,
): Promise<UploadRecord> {
  const { timeoutMs } = options;
  if ((await stepEnded(options, terminationRequested)) === 'leave')
    return { end: 'nothing', skippedFiles: [] };
  let last: unknown = 'the store does not answer';
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), timeoutMs);
  const tooLate = new Promise<never>((_resolve, reject) => {
    late.signal.addEventListener('abort', () =>
      reject(
        new Error(
          `artifacts were not stored within ${formatDuration(timeoutMs)}: ${String(last)}`,
          { cause: last },
        ),
      ),
    );
  });
  const stored = pRetry(async () => await uploadAll(options), {
    retries: Number.POSITIVE_INFINITY,
    minTimeout: 200,
    maxTimeout: 5_000,
    signal: late.signal,
    onFailedAttempt: ({ error }) => {
      last = error;
    },
  });
  return await Promise.race([tooLate, stored]).finally(() => clearTimeout(timer));
}

async function stepEnded(
  { records, port, pollMs = 500 }: UploaderOptions,
  terminationRequested: AbortSignal,
): Promise<'upload' | 'leave'> {
  for (;;) {
    // Evaluate in this order: a supervisor that has started a log, or recorded a start or an end,
    // was listening by then.
    const started = [ARTIFACT_NAMES.log, ARTIFACT_NAMES.started, ARTIFACT_NAMES.finished].some(
      (note) => existsSync(join(records, note)),
    );
    const action = uploadAction({
      started,
      probeListening: await isProbeListening(port),
      terminationRequested: terminationRequested.aborted,
    });
    if (action !== 'wait') return action;
    await delay(pollMs);
  }
}

/**
 * Whether the supervisor accepts connections. Refused by the kernel: no process has the port. A
 * slow response counts as listening. A reset comes from a supervisor that is exiting, which the
 * next check shows.
 */
async function isProbeListening(port: number): Promise<boolean> {
  const socket = connect({ port, host: '127.0.0.1' });
  return await new Promise<boolean>((resolve, reject) => {
    socket.once('connect', () => resolve(true));
    socket.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED' || error.code === 'ECONNRESET')
        resolve(error.code === 'ECONNRESET');
      else reject(error);
    });
  }).finally(() => socket.destroy());
}

/**
 * Stores the snapshot first, because the next step needs it, and the record last: a step with a
 * stored record is complete.
 */
async function uploadAll({
  records,
  artifactDir,
  sharedDir,
  store,
  destination,
  sharedKey,
  secretVariants,
}: UploaderOptions): Promise<UploadRecord> {
  const sharedDirFault = await storeSnapshot(records, sharedDir, store, sharedKey);
  const skippedLog = await storeLog(records, { store, destination, secretVariants });
  const skippedFiles = await uploadDirectory(artifactDir, { store, destination, secretVariants });
  // Without the first file, the command could not be started. Without the second, the step's
  // container was killed, including its supervisor.
  await uploadFile(
    join(records, ARTIFACT_NAMES.started),
    store,
    `${destination}${ARTIFACT_NAMES.started}`,
    secretVariants,
  );
  await uploadFile(
    join(records, ARTIFACT_NAMES.finished),
    store,
    `${destination}${ARTIFACT_NAMES.finished}`,
    secretVariants,
  );
  return {
    end: 'stored',
    skippedFiles: [...skippedLog, ...skippedFiles],
    ...(sharedDirFault === undefined ? {} : { sharedDirFault }),
  };
}

/** Stores the log. Returns its path, relative to ARTIFACT_DIR, if the store never accepts it. */
async function storeLog(
  records: string,
  { store, destination, secretVariants }: UploadTarget,
): Promise<string[]> {
  const name = ARTIFACT_NAMES.log;
  const path = join(records, name);
  try {
    await uploadFile(path, store, `${destination}${name}`, secretVariants);
    return [];
  } catch (error) {
    if (error instanceof ObjectRejectedError) return [`../${name}`];
    throw error;
  }
}

async function storeSnapshot(
  records: string,
  sharedDir: string,
  store: ArtifactStore,
  key: string,
): Promise<string | undefined> {
  try {
    await store.put(key, [await sharedDirSnapshot(records, sharedDir)]);
    return undefined;
  } catch (error) {
    if (error instanceof SharedDirError) return error.message;
    throw error;
  }
}
