/** Demand of a set whose jobs GitHub assigns to a scale set. Pure. */
import type { ScaleSetListenerInput, ScaleSetReport } from '../../core/contract/index.ts';
import type { SetSpec } from '../../core/input/runnerSet.ts';
import { isCount } from '../../core/domain/isCount.ts';
import { isObject } from '../../core/domain/isObject.ts';
import { isTime } from '../../core/domain/isTime.ts';
import { minAndMax, type ScaleBounds } from '../../core/domain/scale.ts';

/** State of a set's scale set, according to its reports. */
export interface ScaleSetFacts {
  /** Jobs assigned to the scale set, waiting or running. */
  readonly assigned: number;
  readonly running: number;
  /** Time of the last numbers (ms since the epoch). */
  readonly at: number;
  /** See {@link ScaleSetReport.position}. */
  readonly openedAt: number;
  readonly messageId: number;
  /** Workflow ids of runners whose job has completed and that have not ended yet. */
  readonly done: readonly string[];
  /** Reason why the scale set cannot be read, and the time since which (ms since the epoch). */
  readonly problem?: { readonly text: string; readonly since: number };
}

/** Maximum number of runner names in one signal. A message has at most 50 events. */
const MAX_NAMES = 1_000;
const MAX_NAME = 200;
const MAX_PROBLEM = 500;

/**
 * Parses the body of a signal with a report, which any sender may have written.
 * @returns `undefined` if it is invalid
 */
export function parseScaleSetReport(body: unknown): ScaleSetReport | undefined {
  if (!isObject(body)) return undefined;
  const { at, position, numbers, started, completed, problem } = body;
  if (!isTime(at)) return undefined;
  const place = isObject(position) ? position : {};
  const { openedAt, messageId } = place;
  const { assigned, running } = isObject(numbers) ? numbers : {};
  return {
    at,
    started: namesIn(started),
    completed: namesIn(completed),
    ...(isTime(openedAt) && isCount(messageId) ? { position: { openedAt, messageId } } : {}),
    ...(isCount(assigned) && isCount(running) ? { numbers: { assigned, running } } : {}),
    ...(typeof problem === 'string' ? { problem: problem.slice(0, MAX_PROBLEM) } : {}),
  };
}

const namesIn = (value: unknown): string[] =>
  (Array.isArray(value) ? value : [])
    .filter((name): name is string => typeof name === 'string' && name.length <= MAX_NAME)
    .slice(0, MAX_NAMES);

/**
 * Limits the times of a report. Anyone may send a signal, and a position of the future would make
 * the set ignore all numbers, permanently. A report is not ignored only because the clock of its
 * sender is ahead.
 * @param latest - latest plausible time (ms since the epoch)
 * @returns `undefined` if the position is of the future
 */
export function limitTimes(report: ScaleSetReport, latest: number): ScaleSetReport | undefined {
  if (report.position !== undefined && report.position.openedAt > latest) return undefined;
  return { ...report, at: Math.min(report.at, latest) };
}

/**
 * Returns the facts after the numbers of a report. Numbers of an earlier position are ignored if
 * they are at most `maxAgeMs` later than the known ones: a signal is not delayed for longer, so the
 * known position is not one that the listener has sent.
 */
export function applyNumbers(
  known: ScaleSetFacts | undefined,
  { at, position, numbers, problem }: ScaleSetReport,
  maxAgeMs: number,
): ScaleSetFacts {
  const before = known ?? {
    assigned: 0,
    running: 0,
    at: 0,
    openedAt: 0,
    messageId: 0,
    done: [],
  };
  const { problem: earlier, ...rest } = before;
  const isEarlier =
    position === undefined ||
    numbers === undefined ||
    (at <= before.at + maxAgeMs &&
      (position.openedAt < before.openedAt ||
        (position.openedAt === before.openedAt && position.messageId < before.messageId)));
  const since = earlier?.since ?? at;
  const current = problem === undefined ? undefined : { text: problem, since };
  if (isEarlier)
    return { ...rest, ...withProblem(current ?? (numbers === undefined ? earlier : undefined)) };
  return { ...rest, ...numbers, ...position, at, ...withProblem(current) };
}

const withProblem = (problem: ScaleSetFacts['problem']): Pick<ScaleSetFacts, 'problem'> =>
  problem === undefined ? {} : { problem };

/**
 * Limits the facts that a previous run carried over, which anyone may have written.
 * @param latest - see {@link limitTimes}
 */
export function restoreScaleSet(
  carried: ScaleSetFacts | undefined,
  latest: number,
): ScaleSetFacts | undefined {
  const parsed = parseScaleSetReport({
    at: carried?.at,
    position: carried,
    numbers: carried,
    completed: carried?.done,
    problem: carried?.problem?.text,
  });
  const report = parsed && limitTimes(parsed, latest);
  if (report?.numbers === undefined || report.position === undefined) return undefined;
  return {
    ...report.numbers,
    ...report.position,
    at: report.at,
    done: report.completed,
    ...withProblem(
      report.problem === undefined ? undefined : { text: report.problem, since: report.at },
    ),
  };
}

/** Facts that the capacity depends on. */
export interface CapacityFacts {
  readonly bounds: ScaleBounds;
  /** Whether the set starts no runners: it is paused, ends, has failed, or has used up its time. */
  readonly startsNone: boolean;
  readonly pods: number;
  /** Pods that are being deleted, and still count towards the maximum. */
  readonly leaving: number;
}

/**
 * Returns the number of jobs that the set can run at a time, which GitHub does not exceed. Leaving
 * pods reduce it only if they take the place of others, so that it does not change with each of
 * them.
 */
export function capacityOf({ bounds, startsNone, pods, leaving }: CapacityFacts): number {
  if (startsNone) return 0;
  const { max } = minAndMax(bounds);
  return bounds.kind === 'elastic' && pods >= max ? Math.max(0, max - leaving) : max;
}

/** Label of every self-hosted runner. A scale set does not have it. */
const SELF_HOSTED = 'self-hosted';

/** Returns the input of the listener of a set, or `undefined` if it has no scale set. */
export function listenerInput({
  name: set,
  scope,
  credential,
  group,
  labels,
  scaleSet,
}: SetSpec): ScaleSetListenerInput | undefined {
  if (scaleSet === undefined || scope === undefined) return undefined;
  const { name, adopt } = scaleSet;
  return {
    set,
    scope,
    credential,
    group,
    labels: labels.filter((label) => label.toLowerCase() !== SELF_HOSTED),
    name,
    ...(adopt ? { adopt } : {}),
  };
}
