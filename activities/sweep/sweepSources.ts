import type { Client } from '@temporalio/client';
import type { CiServers } from '../ports/ciServer.ts';
import type { Compute } from '../ports/compute.ts';
import type { Logger } from '../ports/logger.ts';

/**
 * Dependencies of a sweep. It needs no activity context: both the activity and the command without
 * a worker use it.
 */
export interface SweepSources {
  readonly compute: Compute;
  readonly ciServers: CiServers;
  readonly client: Client;
  /** Task queue of the workflows that the sweep starts to remove registrations. */
  readonly taskQueue: string;
  readonly logger: Logger;
  /**
   * Whether the lists of Secrets, claims and objects of jobs are required. With `where permitted`
   * they are skipped if the cluster forbids them, and reported in `skippedLists`.
   */
  readonly resources: 'required' | 'where permitted';
  /** Called repeatedly with a description of the current work. */
  readonly progress?: (doing: string) => void;
  /** Signal that stops the sweep before its next operation. */
  readonly signal?: AbortSignal;
}
