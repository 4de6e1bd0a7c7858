/** Describes the rerun of a job that was lost with its runner. */
import { WorkflowNotFoundError } from '@temporalio/client';
import type { RerunResult } from '../../core/contract/index.ts';
import type { Session } from '../shared/session.ts';

/** Rerun of a lost job. */
export interface RerunDetails extends Partial<RerunResult> {
  readonly workflowId: string;
  /** Status of its workflow. Absent if Temporal has deleted it. */
  readonly status?: string;
}

/** Returns the rerun, with its result if it has ended. */
export async function readRerun(session: Session, workflowId: string): Promise<RerunDetails> {
  return await session.call(
    async (client) => {
      const handle = client.workflow.getHandle(workflowId);
      try {
        const { status } = await handle.describe();
        const base = { workflowId, status: status.name };
        if (status.name !== 'COMPLETED') return base;
        return { ...base, ...((await handle.result()) as RerunResult) };
      } catch (error) {
        if (error instanceof WorkflowNotFoundError) return { workflowId };
        throw error;
      }
    },
    { workflowId },
  );
}

/** Returns the rerun in one line. */
export function rerunText({ workflowId, status, message }: RerunDetails): string {
  if (message !== undefined) return `${message} (${workflowId})`;
  return status === undefined ? workflowId : `${workflowId} (${status.toLowerCase()})`;
}
