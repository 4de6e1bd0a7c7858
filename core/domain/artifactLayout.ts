/**
 * Layout of the artifact store: a directory for each run of a job, with one for each step and
 * attempt. SHARED_DIR is not masked and may contain passwords, so it has a directory of its own at
 * the top level, and access can be granted to the artifacts alone. Pure.
 */
import type { JobStage } from '../contract/index.ts';

/** One run of a job. */
export interface JobRunPath {
  /** Repository as `owner/repo`. @default none */
  readonly repository?: string;
  readonly job: string;
  /** BUILD_ID of its steps. */
  readonly buildId: string;
}

/** Names in the directory of a step. Viewers of CI artifacts expect these names. */
export const ARTIFACT_NAMES = {
  /** Start of the command. */
  started: 'started.json',
  /**
   * Exit of the command: the supervisor's record. It is written last, so a directory with this file
   * is complete.
   */
  finished: 'finished.json',
  log: 'build-log.txt',
  /** Contents of ARTIFACT_DIR, with its subdirectories. */
  artifacts: 'artifacts/',
  /** The JUnit reports among them, in one directory. */
  junit: 'junit/',
} as const;

/**
 * Paths of {@link stepPath}. Their depth is fixed, so that the directory of one step is never
 * inside that of another.
 */
const STEP_PATH = /^((?:jobs|repositories\/[^/]+\/[^/]+)\/[^/]+\/([^/]+))\/[^/]+$/;

/** Returns the path of a step in the store: `repositories/acme/web/unit/<build>/test-e2e`. */
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

/**
 * Returns the run of a job to which a step belongs: its BUILD_ID, and the path of all its steps.
 * @param path - see {@link stepPath}
 * @returns `undefined` if it is not the path of a step
 */
export function jobRunOfStep(
  path: string,
): { readonly buildId: string; readonly path: string } | undefined {
  const [, run, buildId] = STEP_PATH.exec(path) ?? [];
  return run === undefined || buildId === undefined ? undefined : { buildId, path: run };
}

/**
 * Returns why a step must not use these paths. A step has one directory, and its sources are the
 * snapshots of other steps of the same job run.
 * @returns `undefined` if the paths are valid
 */
export function storagePathError({
  path,
  sharedDirSources,
}: {
  readonly path: string;
  readonly sharedDirSources: readonly string[];
}): string | undefined {
  const run = jobRunOfStep(path);
  if (run === undefined)
    return `"${path}" is not the folder of a job's step; do not set storage: the job does`;
  const foreign = sharedDirSources.find(
    (key) => jobRunOfStep(/^shared\/(.+)\/[0-9]+\.json$/.exec(key)?.[1] ?? '')?.path !== run.path,
  );
  return foreign === undefined
    ? undefined
    : `"${foreign}" is nothing that a step of the same run of the job has left: leave storage to the job`;
}

/**
 * Returns the directory of an attempt at a step, with a trailing slash. Attempts do not share a
 * directory, because an attempt on a lost node may still write after the next has started.
 * @param path - see {@link stepPath}
 * @param attempt - 1 for the first
 */
export function stepPrefix(path: string, attempt: number): string {
  return `artifacts/${path}/${attempt}/`;
}

/**
 * Returns the key of an attempt's snapshot of SHARED_DIR. It is a single object, so that it is
 * complete or does not exist.
 */
export function sharedDirKey(path: string, attempt: number): string {
  return `shared/${path}/${attempt}.json`;
}

/**
 * Returns the keys of the snapshots of this many attempts at a step, latest first. Later attempts
 * and steps may restore SHARED_DIR from them. An attempt whose node was lost, or that left more
 * than the permitted size, has no snapshot.
 */
export function sharedDirKeys(path: string, attempts: number): string[] {
  return Array.from({ length: attempts }, (_, before) => sharedDirKey(path, attempts - before));
}

/**
 * Returns whether a file is a JUnit report, by its name: `junit*.xml` in any directory of
 * ARTIFACT_DIR.
 * @param path - with slashes
 */
export function isJUnitReport(path: string): boolean {
  return /(?:^|\/)junit[^/]*\.xml$/i.test(path);
}

/** Encodes any text as a single path segment that is not `..`. */
function segment(text: string): string {
  return encodeURIComponent(text).replaceAll(/^\.+/g, (dots) => '%2E'.repeat(dots.length));
}
