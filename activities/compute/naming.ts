/**
 * The names of what is created for one runner. They are a function of the runner's identity alone, so that a retried
 * activity, on whatever worker, finds what an earlier try made.
 */
import { createHash } from 'node:crypto';
import type { RunnerIdentity } from '../../core/domain/pod.ts';

/** A pod's name is also its host name and the value of labels: a DNS-1123 label (RFC 1123) of at most 63 characters. */
const MAX_POD_NAME = 63;
const POD_HASH = 10;
/** Of thousands of lives no two have the same: a runner found under such a name is this life's. */
const RUNNER_HASH = 10;

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/**
 * Name of the runner's pod and of its Secret: `<readable prefix of the workflow id>-<10 hex digits>`.
 * The digits come from the whole identity; two runners whose readable parts coincide still differ.
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

/** The workflow id that {@link podName} may have made this name of. `undefined`: it has made it of none. */
export function workflowIdInPodName(name: string): string | undefined {
  return /^(.+)-[0-9a-f]{10}$/.exec(name)?.[1];
}

/**
 * Name of a claim that is the life's own, whichever attempt mounts it: `<readable prefix of the workflow id>-<10 hex digits>-<name>`.
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
 * A label that tells the registrations of one place from those of all others, installations of the same name included. No job asks for it, and
 * a label more keeps no job from a runner.
 * @param place - see `placeName`
 */
export function locationLabel(place: string): string {
  return `holdfast-${sha256(place).slice(0, RUNNER_HASH)}`;
}

/** Whatever place it is of. */
export const isLocationLabel = (label: string): boolean => /^holdfast-[0-9a-f]{10}$/i.test(label);

/** 10 hex digits of the life, whichever attempt: see core/domain/runnerName.ts. */
export function runnerHash({ workflowId, firstRunId }: Omit<RunnerIdentity, 'attempt'>): string {
  return sha256(`${workflowId}|${firstRunId}`).slice(0, RUNNER_HASH);
}
