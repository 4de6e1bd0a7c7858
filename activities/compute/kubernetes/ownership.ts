/** Whose an object is, by its own marks. What a request says of it proves nothing. Pure. */
import type { V1ObjectMeta } from '@kubernetes/client-node';
import type { RunnerIdentity } from '../../../core/domain/pod.ts';
import { INSTALLATION_LABEL, WORKFLOW_ID_ANNOTATION, belongsTo } from './metadata.ts';

/** Marks of an object. */
export type Marks = Pick<V1ObjectMeta, 'labels' | 'annotations'>;

/**
 * Whether the object is of another installation. One without the label was made by this installation if it is marked with one of its
 * runners: somebody has taken the label away.
 */
function isOfAnother({ labels }: Marks, installation: string): boolean {
  return (labels?.[INSTALLATION_LABEL] ?? installation) !== installation;
}

/** Whether the object is of this installation, and of a runner of this workflow. */
export function isOfWorkflow(marks: Marks, installation: string, workflowId: string): boolean {
  return (
    !isOfAnother(marks, installation) && marks.annotations?.[WORKFLOW_ID_ANNOTATION] === workflowId
  );
}

/** Whether the object is of this installation, and was made for exactly this runner. */
export function isOfRunner(marks: Marks, installation: string, identity: RunnerIdentity): boolean {
  return !isOfAnother(marks, installation) && belongsTo(marks.annotations, identity);
}

/** Whether the object was made by this installation, for whichever of its runners. */
export function isOfInstallation({ labels }: Marks, installation: string): boolean {
  return labels?.[INSTALLATION_LABEL] === installation;
}
