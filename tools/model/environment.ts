/**
 * The environment of a workflow: everything that can happen outside of it, in every state. The
 * model assumes the following, and nothing else:
 * - A runner takes a job only while it is registered and online. An ephemeral one takes one job,
 *   and exits with 0 by itself only after it or while idle.
 * - The CI server knows of a job as soon as it starts, and keeps the runner busy for some time
 *   after it has ended. It may return 204 to a DELETE in the first minute of the job.
 * - Lists of the CI server are a minute old at most. Job events come late, twice, in another order
 *   or never.
 * - A ready node does not start a terminating pod, and ends it within its grace period. It
 *   publishes probes within `idleConfirmation`; a later publication is a fault.
 * - A checkpointing command that got SIGTERM exits with 0 only when its work is complete.
 * - The API server shows the start of a container immediately.
 * - A runner that has not registered by the registration deadline never does.
 */
import { CI_SERVER_TRANSITIONS } from './ciServerTransitions.ts';
import { MESSAGE_TRANSITIONS } from './messageTransitions.ts';
import { POD_TRANSITIONS } from './podTransitions.ts';
import type { Transition } from './transition.ts';

/** All transitions of the environment. */
export const ENVIRONMENT: readonly Transition[] = [
  ...POD_TRANSITIONS,
  ...CI_SERVER_TRANSITIONS,
  ...MESSAGE_TRANSITIONS,
];
