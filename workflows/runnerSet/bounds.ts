/** Bounds of the size of a set: its declaration, its schedules, and what the cluster permits. Pure. */
import { limitBounds, type ScaleBounds } from '../../core/domain/scale.ts';
import type { SetStateData } from './carriedState.ts';

type DeclaredFacts = Pick<SetStateData, 'spec' | 'schedule'>;

/** Returns the bounds according to the declaration and its schedules. */
export function declaredBounds({ spec, schedule }: DeclaredFacts): ScaleBounds {
  return spec.schedules[schedule.index ?? -1]?.bounds ?? spec.bounds;
}

/** Whether the size follows the capacity of the cluster. A fixed number of runners does not. */
export function observesCapacity(facts: DeclaredFacts): boolean {
  return facts.spec.capacity === 'observed' && declaredBounds(facts).kind === 'elastic';
}

/** Returns the bounds that the cluster permits now. */
export function currentBounds(
  facts: DeclaredFacts & Pick<SetStateData, 'clusterLimit'>,
): ScaleBounds {
  const declared = declaredBounds(facts);
  const { clusterLimit } = facts;
  return clusterLimit === undefined
    ? declared
    : limitBounds(declared, clusterLimit.limit + clusterLimit.probe);
}
