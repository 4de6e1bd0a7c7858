/**
 * Mark of a sweep on a pod, Job, Secret or claim, as text for people and for the next sweep. Pure.
 */
import { FINDING_KINDS, type FindingKind } from '../contract/index.ts';

/** Parsed annotation `holdfast.dev/sweep-mark`. */
export interface ObjectMark {
  /** Time of the mark (ms since the epoch). */
  readonly atMs: number;
  readonly kind: FindingKind;
}

/**
 * Formats a mark: `2026-01-01T00:00:00.000Z orphaned_pod: REASON`.
 * @param nowMs - current time (ms since the epoch)
 */
export function objectMark(kind: FindingKind, reason: string, nowMs: number): string {
  return `${new Date(nowMs).toISOString()} ${kind}: ${reason}`;
}

/** Parses a mark of {@link objectMark}. Returns `undefined` for any other text. */
export function parseObjectMark(text: string | undefined): ObjectMark | undefined {
  const [, at = '', rest = ''] = /^(\S+) (.*)$/s.exec(text ?? '') ?? [];
  const atMs = Date.parse(at);
  const kind = FINDING_KINDS.find((each) => rest.startsWith(`${each}: `));
  return Number.isNaN(atMs) || kind === undefined ? undefined : { atMs, kind };
}
