/** Kinds of CI servers whose deliveries are received. */
import type { DeliveryFormat } from './deliveryFormat.ts';
import { GITEA_DELIVERIES } from './gitea/giteaDeliveries.ts';
import { GITHUB_DELIVERIES } from './github/gitHubDeliveries.ts';

/** Delivery formats of all supported CI servers. */
export const DELIVERY_FORMATS: readonly DeliveryFormat[] = [GITHUB_DELIVERIES, GITEA_DELIVERIES];

/** Returns the path to which a kind of CI server sends its deliveries. */
export const webhookPath = (server: string): string => `/webhooks/${server}`;
