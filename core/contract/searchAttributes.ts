/** What lists of workflows are filtered by. */
import { defineSearchAttributeKey } from '@temporalio/common';

/** Spelt out: what the compiler would infer is in a module that @temporalio/common does not export. */
type KeywordKey = ReturnType<typeof defineSearchAttributeKey<'KEYWORD'>>;

/** Search attributes (all Keyword). Register them once per namespace; `holdfast doctor` prints the commands. */
export const SEARCH_ATTRIBUTES: Readonly<
  Record<'phase' | 'set' | 'scope' | 'outcome' | 'cause' | 'name' | 'place', KeywordKey>
> = {
  phase: defineSearchAttributeKey('RunnerPhase', 'KEYWORD'),
  set: defineSearchAttributeKey('RunnerSet', 'KEYWORD'),
  scope: defineSearchAttributeKey('RunnerScope', 'KEYWORD'),
  outcome: defineSearchAttributeKey('RunnerOutcome', 'KEYWORD'),
  cause: defineSearchAttributeKey('RunnerCause', 'KEYWORD'),
  /** The name at the CI server: how a webhook finds the workflow. */
  name: defineSearchAttributeKey('RunnerName', 'KEYWORD'),
  /** Where its pods are: `compute/cluster/installation/namespace`. */
  place: defineSearchAttributeKey('RunnerLocation', 'KEYWORD'),
};
