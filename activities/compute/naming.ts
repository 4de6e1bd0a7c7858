/**
 * Names of the objects that are created for one runner. They depend only on the identity of the
 * runner, so that a retried activity on any worker finds what an earlier attempt created.
 */
import { createHash } from 'node:crypto';
import type { RunnerIdentity } from '../../core/domain/pod.ts';

/**
 * Maximum length of a pod name. It is also the host name and a label value: a DNS-1123 label (RFC
 * 1123) of at most 63 characters.
 */
const MAX_POD_NAME = 63;
const POD_HASH = 10;
/**
 * Hex digits of a runner hash. Enough that no two of thousands of runners have the same one, so a
 * runner that is found under such a name belongs to this workflow.
 */
const RUNNER_HASH = 10;

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/**
 * Returns the name of the runner's pod and of its Secret: `<readable prefix of the workflow ID>-<10
 * hex digits>`. The digits depend on the whole identity, so two runners with the same readable
 * prefix still differ.
 */
export function podName(identity: RunnerIdentity): string {
  const hash = sha256(`${identity.workflowId}|${identity.firstRunId}|${identity.attempt}`).slice(
    0,
    POD_HASH,
  );
  const readable = identity.workflowId
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, MAX_POD_NAME - POD_HASH - 1)
    .replaceAll(/^-+|-+$/g, '');
  return readable === '' ? `runner-${hash}` : `${readable}-${hash}`;
}

/**
 * Returns the workflow ID from which {@link podName} may have created this name. `undefined` if it
 * cannot have created it.
 */
export function workflowIdInPodName(name: string): string | undefined {
  return /^(.+)-[0-9a-f]{10}$/.exec(name)?.[1];
}

/**
 * Returns the name of a claim that belongs to the runner workflow and is mounted by all its
 * attempts: `<readable prefix of the workflow ID>-<10 hex digits>-<name>`.
 * @param name - at most 40 characters
 */
export function claimName(
  { workflowId, firstRunId }: Omit<RunnerIdentity, 'attempt'>,
  name: string,
): string {
  const prefix = podName({ workflowId, firstRunId, attempt: 0 });
  const hash = prefix.slice(-POD_HASH);
  const readable = prefix
    .slice(0, -POD_HASH - 1)
    .slice(0, MAX_POD_NAME - POD_HASH - name.length - 2)
    .replace(/-+$/, '');
  return `${readable === '' ? 'runner' : readable}-${hash}-${name}`;
}

/**
 * Returns the label by which the registrations of one location are recognized, also among those of
 * installations with the same name. No job requests it, and an additional label does not keep a
 * runner from any job.
 * @param place - see `formatLocation`
 */
export function locationLabel(place: string): string {
  return `holdfast-${sha256(place).slice(0, RUNNER_HASH)}`;
}

/** Returns whether the label is the location label of any location. */
export const isLocationLabel = (label: string): boolean => /^holdfast-[0-9a-f]{10}$/i.test(label);

/**
 * Returns 10 hex digits that identify the runner workflow, the same for all its attempts; see
 * core/domain/runnerName.ts.
 */
export function runnerHash({ workflowId, firstRunId }: Omit<RunnerIdentity, 'attempt'>): string {
  return sha256(`${workflowId}|${firstRunId}`).slice(0, RUNNER_HASH);
}
