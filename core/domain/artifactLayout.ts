/**
 * Where a job's things lie in the store: a folder for each run of a job, in it one for each step and attempt. SHARED_DIR, which is not censored and
 * may hold passwords, has a folder of its own at the top, so that others may read the artifacts alone. Pure.
 */
import type { JobStage } from '../contract/index.ts';

/** One run of a job. */
export interface JobRunPath {
  /** `owner/repo`. @default none */
  readonly repository?: string;
  readonly job: string;
  /** BUILD_ID of its steps. */
  readonly buildId: string;
}

/** In a step's folder. The names are those that viewers of CI artifacts look for. */
export const ARTIFACT_NAMES = {
  /** When its command started. */
  started: 'started.json',
  /** How it ended: the supervisor's record. Last of all: what has it is complete. */
  finished: 'finished.json',
  log: 'build-log.txt',
  /** What it left in ARTIFACT_DIR, with its folders. */
  artifacts: 'artifacts/',
  /** The JUnit reports among them, in one place. */
  junit: 'junit/',
} as const;

/** What {@link stepPath} makes, and nothing else: of a fixed depth, so that no folder of one step lies in another's. */
const STEP_PATH = /^((?:jobs|repositories\/[^/]+\/[^/]+)\/[^/]+\/([^/]+))\/[^/]+$/;

/** Of a step in the store: `repositories/acme/web/unit/<build>/test-e2e`. */
export function stepPath(
  { repository, job, buildId }: JobRunPath,
  stage: JobStage,
  name: string,
): string {
  return [
    ...(repository === undefined
      ? ['jobs']
      : ['repositories', ...repository.toLowerCase().split('/')]),
    job,
    buildId,
    `${stage}-${name}`,
  ]
    .map(segment)
    .join('/');
}

/** The run of a job that a step's path is of: BUILD_ID, and where all its steps are. `undefined`: it is no path of a step. @param path - see {@link stepPath} */
export function jobRunOfStep(
  path: string,
): { readonly buildId: string; readonly path: string } | undefined {
  const [, run, buildId] = STEP_PATH.exec(path) ?? [];
  return run === undefined || buildId === undefined ? undefined : { buildId, path: run };
}

/** What keeps a step from having its things there: it has one folder, and what was left for it lies beside that, in the same run of the job. `undefined`: nothing does. */
export function storagePathError({
  path,
  sharedDirSources,
}: {
  readonly path: string;
  readonly sharedDirSources: readonly string[];
}): string | undefined {
  const run = jobRunOfStep(path);
  if (run === undefined) return `"${path}" is no folder of a job's step: leave storage to the job`;
  const foreign = sharedDirSources.find(
    (key) => jobRunOfStep(/^shared\/(.+)\/[0-9]+\.json$/.exec(key)?.[1] ?? '')?.path !== run.path,
  );
  return foreign === undefined
    ? undefined
    : `"${foreign}" is nothing that a step of the same run of the job has left: leave storage to the job`;
}

/**
 * Folder of an attempt at a step, with a slash at its end. Attempts do not share one: one on a node that was lost may still write when the next has begun.
 * @param path - see {@link stepPath}
 * @param attempt - 1 for the first
 */
export function stepPrefix(path: string, attempt: number): string {
  return `artifacts/${path}/${attempt}/`;
}

/** What an attempt left in SHARED_DIR: one object, so that it is there whole or not at all. */
export function sharedDirKey(path: string, attempt: number): string {
  return `shared/${path}/${attempt}.json`;
}

/**
 * Keys of what so many attempts at a step left, the last first: where SHARED_DIR of who comes after them may come from. One whose node was lost, or which left
 * more than it may, has left none.
 */
export function sharedDirKeys(path: string, attempts: number): string[] {
  return Array.from({ length: attempts }, (_, before) => sharedDirKey(path, attempts - before));
}

/** JUnit reports are known by their names: `junit*.xml`, in whatever folder of ARTIFACT_DIR. @param path - with slashes */
export function isJUnitReport(path: string): boolean {
  return /(?:^|\/)junit[^/]*\.xml$/i.test(path);
}

/** Of whatever text: neither a path of its own nor `..`. */
function segment(text: string): string {
  return encodeURIComponent(text).replaceAll(/^\.+/g, (dots) => '%2E'.repeat(dots.length));
}
