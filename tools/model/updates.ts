/** Updates of what the workflow knows. */
import type { Cancellation } from '../../core/domain/cancellation.ts';

/** Updates without content. */
const PLAIN_KINDS = [
  /** The pod had ended when the workflow first saw it. */
  'endedDuringStartup',
  /** The id of the registration was found. */
  'idFound',
  /** The CI server shows the runner as online. */
  'onlineAtServer',
  /** The pod shows the runner as online, or the command as started. */
  'online',
  /** The CI server rejected the removal: the runner is busy (422). */
  'rejectedAsBusy',
  /** The runner is unregistered. */
  'unregistered',
  /** The pod was read more than a minute after the last job event, and its view is current. */
  'confirmedIdle',
  /** A pod may have been created, and does not exist. */
  'podInDoubt',
] as const;

/** What a handler of the workflow, or the code after an activity, applies. */
export type Update =
  | { readonly kind: 'provisioned' | 'observed' | 'ended'; readonly view: number }
  | {
      readonly kind: 'job';
      readonly action: 'in_progress' | 'completed';
      readonly job: 'A' | 'B';
      readonly conclusion: 'success' | 'failure';
    }
  | { readonly kind: 'podState'; readonly state: 'idle' | 'busy' }
  | {
      readonly kind: 'cancel';
      readonly mode: Cancellation['mode'];
      readonly by: Cancellation['by'];
    }
  | { readonly kind: (typeof PLAIN_KINDS)[number] };

const CODES = new Map<string, number>(
  [
    'idle',
    'busy',
    ...PLAIN_KINDS,
    'drain drain',
    'drain cancelled',
    'drain idle_timeout',
    'stop cancelled',
    'stop run_timeout',
    'force cancelled',
    'in_progress A success',
    'in_progress B success',
    'in_progress A failure',
    'in_progress B failure',
    'completed A success',
    'completed A failure',
    'completed B success',
    'completed B failure',
  ].map((name, code) => [name, code]),
);

/** Returns a number that is the same for equal updates, and different for others. */
export function updateCode(update: Update): number {
  switch (update.kind) {
    case 'observed':
      return CODES.size + 3 * update.view;
    case 'ended':
      return CODES.size + 3 * update.view + 1;
    case 'provisioned':
      return CODES.size + 3 * update.view + 2;
    case 'job':
      return CODES.get(`${update.action} ${update.job} ${update.conclusion}`) as number;
    case 'podState':
      return CODES.get(update.state) as number;
    case 'cancel':
      return CODES.get(`${update.mode} ${update.by}`) as number;
    case 'endedDuringStartup':
    case 'idFound':
    case 'onlineAtServer':
    case 'online':
    case 'rejectedAsBusy':
    case 'unregistered':
    case 'confirmedIdle':
    case 'podInDoubt':
      return CODES.get(update.kind) as number;
  }
}
