import type { FaultKind } from './faultKinds.ts';
import type { CancelKind } from './schedule.ts';

/** Entry of a timeline: one observed event. */
export type Entry = {
  /** Time since the start of the run (ms). */
  readonly at: number;
  /** ID of the runner's workflow. */
  readonly workflowId?: string;
} & (
  | {
      readonly kind: 'fault';
      readonly fault: FaultKind;
      readonly edge: 'begins' | 'ends';
      readonly target?: string;
    }
  | {
      readonly kind: 'pod';
      readonly step: 'created' | 'started' | 'stopping' | 'ended' | 'deleted';
      /** UID of the pod. */
      readonly pod: string;
      readonly name: string;
      readonly runner: string;
    }
  /** A fault removed the pod: an eviction, a deletion or too little memory. */
  | { readonly kind: 'disrupted'; readonly pod: string; readonly how: string }
  /** A worker requested the deletion of the pod. `job` is the job that its runner had. */
  | {
      readonly kind: 'deletion';
      readonly pod: string;
      readonly graceS: number | undefined;
      readonly job?: number;
    }
  /** A user stopped the runner, or ended its workflow. */
  | { readonly kind: 'stopRequested'; readonly how: CancelKind | 'terminated' }
  | {
      readonly kind: 'job';
      readonly job: number;
      readonly step: 'queued' | 'assigned' | 'started' | 'cancelled by its user';
    }
  | {
      readonly kind: 'job';
      readonly job: number;
      readonly step: 'completed';
      readonly conclusion: string;
    }
  | {
      readonly kind: 'registration';
      readonly runner: string;
      readonly step: 'created' | 'removed';
    }
  | {
      readonly kind: 'request';
      readonly to: 'cluster' | 'CI server';
      readonly what: string;
      readonly status: number;
    }
  | {
      readonly kind: 'end';
      readonly status: string;
      readonly outcome?: string;
      readonly cause?: string;
    }
  /** Event of the workflow's history, added when the timeline is printed. */
  | { readonly kind: 'event'; readonly what: string }
);

/** Formats an entry, without its time. */
function formatEntry(entry: Entry): string {
  switch (entry.kind) {
    case 'fault':
      return `FAULT ${entry.fault} ${entry.edge}${entry.target === undefined ? '' : ` (${entry.target})`}`;
    case 'pod':
      return `pod ${entry.name} ${entry.step} (runner ${entry.runner}, ${entry.pod})`;
    case 'disrupted':
      return `FAULT removes pod ${entry.pod}: ${entry.how}`;
    case 'deletion':
      return `a worker requests the deletion of pod ${entry.pod}, grace period ${entry.graceS ?? 'of the pod'}${entry.job === undefined ? '' : `, DURING JOB ${entry.job}`}`;
    case 'stopRequested':
      return `stop requested: ${entry.how}`;
    case 'job':
      return `job ${entry.job} ${entry.step}${'conclusion' in entry ? `: ${entry.conclusion}` : ''}`;
    case 'registration':
      return `registration ${entry.runner} ${entry.step}`;
    case 'request':
      return `${entry.to}: ${entry.what} -> ${entry.status === 0 ? 'no response' : entry.status}`;
    case 'end':
      return `workflow ${entry.status}${entry.outcome === undefined ? '' : `: ${[entry.outcome, entry.cause].filter(Boolean).join('/')}`}`;
    case 'event':
      return `  ${entry.what}`;
  }
}

/**
 * Formats the entries of one runner in order, and the faults from 20 s before its first entry to
 * its last one.
 */
export function timelineOf(entries: readonly Entry[], workflowId: string): string[] {
  const own = entries.filter((entry) => entry.workflowId === workflowId);
  const from = Math.min(...own.map(({ at }) => at)) - 20_000;
  const to = Math.max(...own.map(({ at }) => at));
  const shown = entries.filter(
    (entry) =>
      entry.workflowId === workflowId ||
      (entry.workflowId === undefined &&
        entry.kind === 'fault' &&
        entry.at >= from &&
        entry.at <= to),
  );
  return shown
    .toSorted((a, b) => a.at - b.at)
    .map((entry) => `${(entry.at / 1_000).toFixed(3).padStart(9)} s  ${formatEntry(entry)}`);
}
