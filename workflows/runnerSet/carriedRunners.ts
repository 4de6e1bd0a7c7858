/** Compact form of a set's runners for continue-as-new. Pure. */
import { limitTime } from '../../core/domain/isTime.ts';
import { runnerSuffix, runnerWorkflowId } from '../../core/domain/setRunnerNames.ts';
import { decodeName, decodeNumber, encodeName, encodeNumber, trimRecord } from './compact.ts';
import { UNKNOWN_GENERATION, type SetRunner } from './runnerRecord.ts';

/** Runner of the set. */
type CarriedRunner = readonly [
  /** Suffix of the workflow id. */
  suffix: string,
  /** Index of the state, times two, plus one if a job event has named the runner. */
  state?: number,
  /** `startedAt` minus that of the previous runner. */
  started?: number,
  /** Name at the CI server. */
  runnerName?: string,
  /** `onlineSince`, relative to `startedAt`. */
  online?: number,
  /** `busySince`, relative to `startedAt`. */
  busy?: number,
  /** Index of the template. */
  generation?: number,
  /** 1 plus the number of the volume slot. */
  slot?: number,
  /** Time of the last drain request, relative to `startedAt`, and their number. */
  drained?: number,
  times?: number,
  /** 1 if the runner is withdrawn, 2 if its pod was seen with a node. */
  node?: number,
  /** Time since which the runner has no node, relative to `startedAt`. */
  noNode?: number,
  /** 1 plus the index of the reason why it has none. */
  reason?: number,
];

/** Runners of a set in the compact form for continue-as-new. */
export interface CarriedRunners {
  /** Template hashes, each with whether its runners are ephemeral. */
  readonly generations: readonly (readonly [string, boolean])[];
  readonly runners: readonly CarriedRunner[];
  /**
   * Suffixes of the workflow ids of ended runners, each with the time of its end minus that of the
   * previous one (ms).
   */
  readonly ended: readonly (readonly [string, number])[];
  /** Reasons why runners have no node. @default none */
  readonly reasons?: readonly string[];
}

const WITHDRAWN = 1;
const HAS_NODE = 2;
/** Maximum number of carried reasons, and maximum length of each (characters). */
const MAX_REASONS = 50;
const MAX_REASON = 300;

const STATES: readonly SetRunner['state'][] = ['starting', 'idle', 'busy', 'draining'];

/** Encodes runners, and the times at which others have ended (ms since the epoch). */
export function encodeRunners(
  set: string,
  runners: readonly SetRunner[],
  ended: ReadonlyMap<string, number>,
): CarriedRunners {
  const generations = [
    ...new Map(runners.map(({ templateHash, ephemeral }) => [templateHash, ephemeral])),
  ];
  const index = new Map(generations.map(([generation], at) => [generation, at]));
  const reasons = [
    ...new Set(runners.flatMap(({ noNode }) => (noNode === undefined ? [] : [noNode.reason]))),
  ].slice(0, MAX_REASONS);
  let before = 0;
  return {
    generations,
    runners: runners.map((runner): CarriedRunner => {
      const { workflowId, startedAt, runnerName, drainRequested } = runner;
      const suffix = suffixOf(set, workflowId);
      const started = startedAt - before;
      before = startedAt;
      return trimRecord([
        suffix,
        STATES.indexOf(runner.state) * 2 + (runner.jobReported ? 1 : 0),
        started,
        encodeName(`${set}-${suffix}-`, runnerName),
        encodeNumber(startedAt, runner.onlineSince),
        encodeNumber(startedAt, runner.busySince),
        index.get(runner.templateHash) ?? -1,
        runner.slot === undefined ? 0 : runner.slot + 1,
        encodeNumber(startedAt, drainRequested?.at),
        drainRequested?.times ?? 0,
        encodeNode(runner),
        encodeNumber(startedAt, runner.noNode?.since),
        runner.noNode === undefined ? 0 : reasons.indexOf(runner.noNode.reason) + 1,
      ]);
    }),
    ended: encodeEnded(set, ended),
    ...(reasons.length === 0 ? {} : { reasons }),
  };
}

/** A withdrawn runner has no node, so one number expresses both. */
function encodeNode({ withdrawn, hasNode }: SetRunner): number {
  if (withdrawn === true) return WITHDRAWN;
  return hasNode === true ? HAS_NODE : 0;
}

/**
 * Decodes the runners of {@link encodeRunners}, in their order.
 * @param now - latest plausible time (ms since the epoch)
 */
export function decodeRunners(set: string, carried: CarriedRunners, now: number): SetRunner[] {
  let startedAt = 0;
  return carried.runners.map((one) => {
    const [suffix, state = 0, started = 0, name = '', online = 0, busy = 0, generation = 0] = one;
    const [slot = 0, drained = 0, times = 0] = one.slice(7) as number[];
    const [node = 0, unplaced = 0, reason = 0] = one.slice(10) as number[];
    startedAt += started;
    const [templateHash, ephemeral] = carried.generations[generation] ?? UNKNOWN_GENERATION;
    const runnerName = decodeName(`${set}-${suffix}-`, name);
    const onlineSince = decodeNumber(startedAt, online);
    const busySince = decodeNumber(startedAt, busy);
    const drainedAt = decodeNumber(startedAt, drained);
    const noNodeSince = decodeNumber(startedAt, unplaced);
    return {
      workflowId: runnerWorkflowId(set, suffix),
      templateHash,
      ephemeral,
      state: STATES[state >> 1] ?? 'starting',
      startedAt: limitTime(startedAt, now),
      jobReported: state % 2 === 1,
      ...(slot === 0 ? {} : { slot: slot - 1 }),
      ...(runnerName === undefined ? {} : { runnerName }),
      ...(onlineSince === undefined ? {} : { onlineSince: limitTime(onlineSince, now) }),
      ...(busySince === undefined ? {} : { busySince: limitTime(busySince, now) }),
      ...(drainedAt === undefined
        ? {}
        : { drainRequested: { at: limitTime(drainedAt, now), times } }),
      ...(node === WITHDRAWN ? { withdrawn: true } : {}),
      ...(node === HAS_NODE ? { hasNode: true } : {}),
      ...(noNodeSince === undefined
        ? {}
        : {
            noNode: {
              since: limitTime(noNodeSince, now),
              reason: decodeReason(carried.reasons?.[reason - 1]),
            },
          }),
    };
  });
}

const decodeReason = (reason: unknown): string =>
  typeof reason === 'string' ? reason.slice(0, MAX_REASON) : '';

/** Encodes the times at which runners have ended, by their workflow ids. */
export function encodeEnded(
  set: string,
  ended: ReadonlyMap<string, number>,
): CarriedRunners['ended'] {
  let before = 0;
  return Array.from(ended, ([workflowId, at]): [string, number] => {
    const after = at - before;
    before = at;
    return [suffixOf(set, workflowId), after];
  });
}

/**
 * Decodes the times of {@link encodeEnded}.
 * @param now - latest plausible time (ms since the epoch)
 */
export function decodeEnded(
  set: string,
  ended: CarriedRunners['ended'],
  now: number,
): [string, number][] {
  let at = 0;
  return ended.map(([suffix, after]): [string, number] => {
    at += after;
    return [runnerWorkflowId(set, suffix), limitTime(at, now)];
  });
}

const suffixOf = (set: string, workflowId: string): string =>
  runnerSuffix(set, workflowId) ?? workflowId;
