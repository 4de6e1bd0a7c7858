/** What news does to a life. */
import type { Cancellation } from '../../core/domain/cancellation.ts';

/** The handlers and the lines of the workflow that take answers in. */
export type Op =
  | { readonly kind: 'provisioned' | 'see' | 'ended'; readonly view: number }
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
  /** `foundEnded`: the pod that it saw has ended. `known`: its id was found. `sighted`: it is online at the CI server. `isUp`: its pod says so. `called busy`: 422. `unregistered`: its verdict is fixed. `in doubt`: a pod may have been made, and is gone. `seen live`: it was looked at more than a minute after the last event. */
  | {
      readonly kind:
        | 'foundEnded'
        | 'known'
        | 'sighted'
        | 'isUp'
        | 'called busy'
        | 'unregistered'
        | 'seen live'
        | 'in doubt';
    };

const JOB_OPS = [
  'in_progress A success',
  'in_progress B success',
  'in_progress A failure',
  'in_progress B failure',
  'completed A success',
  'completed A failure',
  'completed B success',
  'completed B failure',
];
const PLAIN_OPS = [
  'idle',
  'busy',
  'foundEnded',
  'known',
  'sighted',
  'isUp',
  'called busy',
  'unregistered',
  'seen live',
  'in doubt',
  'drain drain',
  'drain cancelled',
  'drain idle_timeout',
  'stop cancelled',
  'stop run_timeout',
  'force cancelled',
  ...JOB_OPS,
];
const PLAIN = new Map(PLAIN_OPS.map((op, index) => [op, index]));

/** Its number, the same for equal ones. */
export function numberOf(op: Op): number {
  switch (op.kind) {
    case 'see':
      return PLAIN.size + 3 * op.view;
    case 'ended':
      return PLAIN.size + 3 * op.view + 1;
    case 'provisioned':
      return PLAIN.size + 3 * op.view + 2;
    case 'job':
      return PLAIN.get(`${op.action} ${op.job} ${op.conclusion}`) as number;
    case 'podState':
      return PLAIN.get(op.state) as number;
    case 'cancel':
      return PLAIN.get(`${op.mode} ${op.by}`) as number;
    case 'foundEnded':
    case 'known':
    case 'sighted':
    case 'isUp':
    case 'called busy':
    case 'unregistered':
    case 'seen live':
    case 'in doubt':
      return PLAIN.get(op.kind) as number;
  }
}
