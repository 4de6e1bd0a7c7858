/**
 * Determines the owner of an object by its labels and annotations. The content of a request proves
 * nothing. Pure.
 */
import type { V1ObjectMeta } from '@kubernetes/client-node';
import type { RunnerIdentity } from '../../../core/domain/pod.ts';
import { INSTALLATION_LABEL, WORKFLOW_ID_ANNOTATION, belongsTo } from './metadata.ts';

/** Labels and annotations of an object. */
export type Marks = Pick<V1ObjectMeta, 'labels' | 'annotations'>;

/**
 * Returns whether the object belongs to another installation. An object without the label belongs
 * to this installation if it has the annotations of one of its runners: someone has removed the
 * label.
 */
function isOfAnother({ labels }: Marks, installation: string): boolean {
  return (labels?.[INSTALLATION_LABEL] ?? installation) !== installation;
}

/** Returns whether the object belongs to this installation and to a runner of this workflow. */
export function isOfWorkflow(marks: Marks, installation: string, workflowId: string): boolean {
  return (
    !isOfAnother(marks, installation) && marks.annotations?.[WORKFLOW_ID_ANNOTATION] === workflowId
  );
}

/**
 * Returns whether the object belongs to this installation and was created for exactly this runner.
 */
export function isOfRunner(marks: Marks, installation: string, identity: RunnerIdentity): boolean {
  return !isOfAnother(marks, installation) && belongsTo(marks.annotations, identity);
}

/** Returns whether this installation created the object, for any of its runners. */
export function isOfInstallation({ labels }: Marks, installation: string): boolean {
  return labels?.[INSTALLATION_LABEL] === installation;
}
