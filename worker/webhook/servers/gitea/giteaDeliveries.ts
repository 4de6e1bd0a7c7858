/**
 * Webhook deliveries of Gitea. They have GitHub's form and also GitHub's headers. Gitea does not
 * redeliver.
 */
import { attemptOf } from '../../../../activities/ciServers/gitea/attempt.ts';
import type { DeliveryFormat } from '../deliveryFormat.ts';
import { gitHubShapedDeliveries } from '../github/gitHubDeliveries.ts';

/** Format of webhook deliveries of Gitea. */
export const GITEA_DELIVERIES: DeliveryFormat = gitHubShapedDeliveries({
  server: 'gitea',
  // `created_at` is the creation time of the run, also for a job that waited for others.
  createdWhenQueued: false,
  attempt: ({ runAttempt, runnerId }) => attemptOf({ runAttempt: runAttempt ?? 0, runnerId }),
});
