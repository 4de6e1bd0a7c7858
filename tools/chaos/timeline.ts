import type { FaultKind } from './faultKinds.ts';
import type { CancelKind } from './schedule.ts';

/** One thing that happened. A life is named by its workflow's id, a pod by its UID. */
export type Entry = {
  /** Since the start of the run, in ms. */
  readonly at: number;
  readonly life?: string;
} & (
  | {
      readonly kind: 'fault';
      readonly fault: FaultKind;
      readonly edge: 'begins' | 'ends';
      readonly whom?: string;
    }
  | {
      readonly kind: 'pod';
      readonly step: 'created' | 'started' | 'stopping' | 'ended' | 'gone';
      readonly pod: string;
      readonly name: string;
      readonly runner: string;
    }
  /** A fault took it: an eviction, a deletion, too little memory. */
  | { readonly kind: 'taken'; readonly pod: string; readonly how: string }
  /** A worker asked the API server to delete it, while its runner had this job. */
  | {
      readonly kind: 'deletion';
      readonly pod: string;
      readonly graceS: number | undefined;
      readonly job?: number;
    }
  /** Its user told the runner to go, or its workflow was ended from outside. */
  | { readonly kind: 'told'; readonly how: CancelKind | 'terminated' }
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
  | { readonly kind: 'registration'; readonly runner: string; readonly step: 'made' | 'removed' }
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
  /** Of its workflow's history, added when it is printed. */
  | { readonly kind: 'event'; readonly what: string }
);

/** What of an entry a line says, by kind. */
function words(entry: Entry): string {
  switch (entry.kind) {
    case 'fault':
      return `FAULT ${entry.fault} ${entry.edge}${entry.whom === undefined ? '' : ` (${entry.whom})`}`;
    case 'pod':
      return `pod ${entry.name} ${entry.step} (runner ${entry.runner}, ${entry.pod})`;
    case 'taken':
      return `FAULT takes pod ${entry.pod}: ${entry.how}`;
    case 'deletion':
      return `a worker asks to delete pod ${entry.pod}, grace ${entry.graceS ?? 'its own'}${entry.job === undefined ? '' : `, WHILE JOB ${entry.job} RUNS`}`;
    case 'told':
      return `told to go: ${entry.how}`;
    case 'job':
      return `job ${entry.job} ${entry.step}${'conclusion' in entry ? `: ${entry.conclusion}` : ''}`;
    case 'registration':
      return `registration ${entry.runner} ${entry.step}`;
    case 'request':
      return `${entry.to}: ${entry.what} → ${entry.status === 0 ? 'no answer' : entry.status}`;
    case 'end':
      return `workflow ${entry.status}${entry.outcome === undefined ? '' : `: ${[entry.outcome, entry.cause].filter(Boolean).join('/')}`}`;
    case 'event':
      return `  ${entry.what}`;
  }
}

/** All of one life in the order of time, with the faults that there were from a little before it on. */
export function timelineOf(entries: readonly Entry[], life: string): string[] {
  const own = entries.filter((entry) => entry.life === life);
  const from = Math.min(...own.map(({ at }) => at)) - 20_000;
  const to = Math.max(...own.map(({ at }) => at));
  const shown = entries.filter(
    (entry) =>
      entry.life === life ||
      (entry.life === undefined && entry.kind === 'fault' && entry.at >= from && entry.at <= to),
  );
  return shown
    .toSorted((a, b) => a.at - b.at)
    .map((entry) => `${(entry.at / 1_000).toFixed(3).padStart(9)} s  ${words(entry)}`);
}
