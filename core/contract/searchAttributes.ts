/** Search attributes of Holdfast's workflows. */
import { defineSearchAttributeKey } from '@temporalio/common';

/**
 * Type of a Keyword key. It is explicit because the inferred type is in a module that
 * @temporalio/common does not export.
 */
type KeywordKey = ReturnType<typeof defineSearchAttributeKey<'KEYWORD'>>;

/**
 * Search attributes, all of type Keyword. Register them once per namespace; `holdfast doctor`
 * prints the commands.
 */
export const SEARCH_ATTRIBUTES: Readonly<
  Record<'phase' | 'set' | 'scope' | 'outcome' | 'cause' | 'name' | 'place', KeywordKey>
> = {
  phase: defineSearchAttributeKey('RunnerPhase', 'KEYWORD'),
  set: defineSearchAttributeKey('RunnerSet', 'KEYWORD'),
  scope: defineSearchAttributeKey('RunnerScope', 'KEYWORD'),
  outcome: defineSearchAttributeKey('RunnerOutcome', 'KEYWORD'),
  cause: defineSearchAttributeKey('RunnerCause', 'KEYWORD'),
  /** Name of the runner at the CI server. The webhook finds the workflow by it. */
  name: defineSearchAttributeKey('RunnerName', 'KEYWORD'),
  /** Location of the pods: `compute/cluster/installation/namespace`. */
  place: defineSearchAttributeKey('RunnerLocation', 'KEYWORD'),
};
