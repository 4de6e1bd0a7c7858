/**
 * Deliveries of Gitea's webhooks: in GitHub's form, with GitHub's headers too. Gitea never delivers
 * anything again.
 */
import { attemptOf } from '../../../../activities/ciServers/gitea/attempt.ts';
import type { DeliveryFormat } from '../deliveryFormat.ts';
import { gitHubShapedDeliveries } from '../github/gitHubDeliveries.ts';

/** Format of webhook deliveries of Gitea. */
export const GITEA_DELIVERIES: DeliveryFormat = gitHubShapedDeliveries({
  server: 'gitea',
  // It is the time at which the run was created, also for a job that waited for others.
  createdWhenQueued: false,
  attempt: ({ runAttempt, runnerId }) => attemptOf({ runAttempt: runAttempt ?? 0, runnerId }),
});
