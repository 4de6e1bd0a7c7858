/** What the workflow `jobDefinition` may ask of the world. */
import type {
  JobDefinitionInput,
  JobSchedule,
  JobVersion,
  TurnEndedNews,
} from '../contract/index.ts';
import type { Scope } from '../domain/ciServer.ts';
import type { DefinitionSpec } from '../input/jobDefinition.ts';

export interface DefinitionActivities {
  /** Checks a declaration as each of its runs will be. @throws InvalidInput */
  admitDefinition(input: {
    readonly input: unknown;
    readonly workflowId: string;
  }): Promise<AdmittedDefinition>;
  /** When a schedule's next time is: after that one, and not past. */
  nextScheduled(input: {
    readonly schedules: readonly Required<JobSchedule>[];
    readonly afterMs: number;
  }): Promise<NextScheduled>;
  /** Hands a version to the runs of its change set, which begin if there are none. */
  handVersion(input: { readonly group: string; readonly version: JobVersion }): Promise<void>;
  /** Of these change sets those for which nothing runs any more, and nothing waits. */
  findOver(input: { readonly groups: readonly string[] }): Promise<{ over: OverTurn[] }>;
  /** The files that a pull request changes. `null`: nobody can say, or they are too many. */
  changedPaths(input: {
    readonly credential: string;
    readonly scope: Scope;
    readonly pullRequest: number;
  }): Promise<string[] | null>;
}

/** A change set for which nothing runs any more. Without an outcome: nobody knows it. */
export type OverTurn = Pick<TurnEndedNews, 'group' | 'outcome'>;

/** In ms since the epoch; absent: never. */
export interface NextScheduled {
  readonly nextAtMs?: number;
}

export interface AdmittedDefinition extends NextScheduled {
  readonly spec: DefinitionSpec;
  /** What was handed in. */
  readonly declaration: JobDefinitionInput;
}
