import type { Client } from '@temporalio/client';
import type { CiServers, Compute, Logger } from '../ports.ts';

/** What a sweep works with. It needs no activity's context: the workflow's activity and the command without a worker both call it. */
export interface SweepSources {
  readonly compute: Compute;
  readonly ciServers: CiServers;
  readonly client: Client;
  /** For the workflows that it starts: those that go on removing a registration. */
  readonly taskQueue: string;
  readonly logger: Logger;
  /** Secrets, claims and what jobs have left: may this process do without their lists, where the cluster does not permit them? A worker may; see `unseen` in the report. */
  readonly resources: 'required' | 'where permitted';
  /** Told what it is doing, again and again. */
  readonly progress?: (doing: string) => void;
  /** Nothing more is begun once it is aborted. */
  readonly signal?: AbortSignal;
}
