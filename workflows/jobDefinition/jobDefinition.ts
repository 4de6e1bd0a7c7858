import { setHandler, workflowInfo } from '@temporalio/workflow';
import {
  applyDefinitionSignal,
  deleteDefinitionSignal,
  jobDeclarationQuery,
  jobDefinitionStatusQuery,
  pauseDefinitionSignal,
  repositoryChangeSignal,
  resumeDefinitionSignal,
  turnEndedSignal,
} from '../../core/contract/index.ts';
import { readReason } from '../../core/domain/cancellation.ts';
import { NOTHING_YET, type CarriedDefinition } from './carried.ts';
import { Definition } from './definition.ts';

/**
 * One declared job: what it is, what starts it, and whose turn it is. Started together with its first signal `apply`. It hands each version to the runs of its
 * change set (`jobGroup`), which are their own workflows. Times of a schedule are timers of its own, not a Temporal Schedule: so one workflow is all of a declared
 * job, to pause, to delete and to count turns by. Ends after the signal `delete`, when its runs are over.
 * @param carried - what this workflow knew before it went on as a new one
 */
export async function jobDefinition(carried: CarriedDefinition = NOTHING_YET): Promise<void> {
  const definition = new Definition(workflowInfo().workflowId, carried);
  setHandler(applyDefinitionSignal, (input) => definition.hear({ kind: 'apply', input }), {
    description: 'What the job is from now on. One that is invalid is refused',
  });
  setHandler(
    pauseDefinitionSignal,
    (body?: { reason?: string }) => definition.hear({ kind: 'pause', reason: readReason(body) }),
    { description: 'Begin nothing. Body: {reason}' },
  );
  setHandler(resumeDefinitionSignal, () => definition.hear({ kind: 'resume' }), {
    description: 'Begin what waits',
  });
  setHandler(
    deleteDefinitionSignal,
    (body?: { reason?: string }) => definition.hear({ kind: 'delete', reason: readReason(body) }),
    { description: 'End, when the runs are over. Body: {reason}' },
  );
  setHandler(
    repositoryChangeSignal,
    (change) => definition.hear({ kind: 'change', change, asked: false }),
    { description: 'The repository has changed' },
  );
  setHandler(turnEndedSignal, (news) => definition.hear({ kind: 'ended', news }), {
    description: 'Nothing runs for a change set any more',
  });
  setHandler(jobDefinitionStatusQuery, () => definition.status(), {
    description: 'What runs, what waits, what was left out and why',
  });
  setHandler(jobDeclarationQuery, () => definition.declaration, { description: 'What the job is' });
  await definition.run();
}
