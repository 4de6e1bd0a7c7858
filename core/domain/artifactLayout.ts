/**
 * Where a job's things lie in the store: a folder for each run of a job, in it one for each step and attempt. SHARED_DIR, which is not censored and
 * may hold passwords, has a folder of its own at the top, so that others may read the artifacts alone. Pure.
 */
import type { JobStage } from '../contract/index.ts';

/** One run of a job. */
export interface StoredRun {
  /** `owner/repo`. @default none */
  readonly repository?: string;
  readonly job: string;
  /** BUILD_ID of its steps. */
  readonly buildId: string;
}

/** One attempt at one step. Attempts do not share a folder: one on a node that was lost may still write when the next has begun. */
export interface StoredStep {
  readonly stage: JobStage;
  readonly name: string;
  /** 1 for the first. */
  readonly attempt: number;
}

/** In a step's folder. The names are those that viewers of CI artifacts look for. */
export const STORED = {
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

/** Folder of a step's attempt, with a slash at its end. */
export function stepFolder(run: StoredRun, step: StoredStep): string {
  return `artifacts/${pathOf(run, step)}/`;
}

/** What a step's attempt left in SHARED_DIR: one object, so that it is there whole or not at all. */
export function sharedKey(run: StoredRun, step: StoredStep): string {
  return `shared/${pathOf(run, step)}.json`;
}

/**
 * Where SHARED_DIR of the next step may come from, best first: the step before it, or, where that left none (its node was lost, or it left more than
 * it may), the one before that.
 * @param before - the attempts so far, in the order in which they began
 */
export function sharedSources(run: StoredRun, before: readonly StoredStep[]): string[] {
  return before.toReversed().map((step) => sharedKey(run, step));
}

/** JUnit reports are known by their names: `junit*.xml`, in whatever folder of ARTIFACT_DIR. @param path - with slashes */
export function isJUnitReport(path: string): boolean {
  return /(?:^|\/)junit[^/]*\.xml$/i.test(path);
}

function pathOf({ repository, job, buildId }: StoredRun, { stage, name, attempt }: StoredStep): string {
  return [...(repository === undefined ? ['jobs'] : ['repositories', ...repository.toLowerCase().split('/')]), job, buildId, `${stage}-${name}`, String(attempt)].map(segment).join('/');
}

/** Of whatever text: neither a path of its own nor `..`. */
function segment(text: string): string {
  return encodeURIComponent(text).replaceAll(/^\.+/g, (dots) => '%2E'.repeat(dots.length));
}
