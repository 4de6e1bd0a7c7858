/** The sweep: looks at workflows, pods and registrations, compares them, and marks or repairs what disagrees. */
import type { Client } from '@temporalio/client';
import type { SweepMark, SweepReport } from '../../core/contract/index.ts';
import type { SweepSpec } from '../../core/input/sweep.ts';
import type { CiServers, Compute, Logger } from '../ports.ts';

/** What a sweep works with. It needs no activity's context: the workflow's activity and the command without a worker both call it. */
export interface SweepSources {
  readonly compute: Compute;
  readonly ciServers: CiServers;
  readonly client: Client;
  /** For workflows that it starts where that of the life is not known. */
  readonly taskQueue: string;
  readonly logger: Logger;
  /** Secrets and claims: may this process do without their lists, where the cluster does not permit them? A worker may; see `unseen` in the report. */
  readonly resources: 'required' | 'where permitted';
  /** Told what it is doing, again and again. */
  readonly progress?: (doing: string) => void;
  /** Nothing more is begun once it is aborted. */
  readonly signal?: AbortSignal;
}

/**
 * One sweep. A list that cannot be had is in the report, and nothing is touched then; so is an item that failed.
 * @param spec - from `parseSweepInput` of core/input/sweep.ts
 * @param marks - of the last report; {@link SweepReport.marks}
 * @throws ComputeError where there is nothing to sweep on this compute, and when the place cannot be found out; the signal's reason
 */
export async function sweep(sources: SweepSources, spec: SweepSpec, marks: readonly SweepMark[]): Promise<SweepReport> {
  throw new Error(`not written yet: ${sources.taskQueue} ${JSON.stringify(spec)} ${marks.length}`);
}
