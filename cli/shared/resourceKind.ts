/** Kinds of objects that the commands manage. */
import {
  JOB_WORKFLOW,
  RUNNER_SET_WORKFLOW,
  RUNNER_WORKFLOW,
  setWorkflowId,
} from '../../core/contract/index.ts';

/** Name of a list of objects in documents. */
export type Plural = 'runners' | 'sets' | 'jobs';

/** Kind of object. Each object is a workflow. */
export interface ResourceKind {
  readonly noun: 'runner' | 'set' | 'job';
  readonly plural: Plural;
  readonly workflowType: string;
  /** Returns the workflow IDs that a user may mean, in the order in which they are tried. */
  readonly candidates: (nameOrId: string) => readonly string[];
}

const withPrefix =
  (prefix: string) =>
  (id: string): readonly string[] =>
    id.startsWith(prefix) ? [id] : [id, `${prefix}${id}`];

/** A runner, by its workflow ID; the prefix `runner-` can be omitted. */
export const RUNNER: ResourceKind = {
  noun: 'runner',
  plural: 'runners',
  workflowType: RUNNER_WORKFLOW,
  candidates: withPrefix('runner-'),
};

/** A runner set, by its name or workflow ID. */
export const SET: ResourceKind = {
  noun: 'set',
  plural: 'sets',
  workflowType: RUNNER_SET_WORKFLOW,
  candidates: (name) => [
    setWorkflowId(name),
    ...(name.startsWith(setWorkflowId('')) ? [name] : []),
  ],
};

/** A job, by its workflow ID; the prefix `job-` can be omitted. */
export const JOB: ResourceKind = {
  noun: 'job',
  plural: 'jobs',
  workflowType: JOB_WORKFLOW,
  candidates: withPrefix('job-'),
};
