/** What a continue-as-new carries over of a declared job; plain data. */
import type { AdmittedDefinition } from '../../core/activities/index.ts';
import type { EndedTurn, JobDefinitionStatus, LeftOut } from '../../core/contract/index.ts';
import { NO_TURNS, type Turns } from './turns.ts';

export interface CarriedDefinition extends Pick<
  JobDefinitionStatus,
  'generation' | 'refused' | 'paused' | 'ending'
> {
  /** Absent: none was ever good. */
  readonly admitted?: AdmittedDefinition;
  readonly turns: Turns;
  readonly ended: readonly EndedTurn[];
  readonly leftOut: readonly LeftOut[];
}

export const NOTHING_YET: CarriedDefinition = {
  generation: 0,
  turns: NO_TURNS,
  ended: [],
  leftOut: [],
};
