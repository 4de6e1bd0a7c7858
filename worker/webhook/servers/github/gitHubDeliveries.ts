/** Webhook deliveries of GitHub: headers, signature, bodies, and their redelivery. */
import { parseJson } from '../../../../core/domain/parseJson.ts';
import { header } from '../../requestHeaders.ts';
import {
  BAD_SIGNATURE,
  malformed,
  NO_JSON,
  PING,
  type WebhookResponse,
} from '../../webhookResponses.ts';
import type { DeliveryFormat } from '../deliveryFormat.ts';
import { deliverySpan } from './deliverySpan.ts';
import { verifySignature } from './signature.ts';
import { GITHUB_JOBS, parseWorkflowJob, type WorkflowJobRules } from './workflowJob.ts';

const EVENT = 'x-github-event';
const DELIVERY = 'x-github-delivery';
const SIGNATURE = 'x-hub-signature-256';

/** Node joins a repeated header with a comma, which none of these patterns matches. */
const PATTERNS = {
  signature: /^sha256=[0-9a-f]{64}$/,
  event: /^[a-z][a-z_]{0,63}$/,
  /** Pattern of delivery IDs. GitHub and Gitea use UUIDs. */
  delivery: /^[\w-]{1,100}$/,
};

const NO_EVENT_NAME = malformed(
  'the header X-GitHub-Event is missing, or not the name of an event',
);
const NO_DELIVERY_ID = malformed('the header X-GitHub-Delivery is missing, or not an ID');
const NO_EVENT = malformed("this is not a workflow_job event in GitHub's form");
const EXPIRED: WebhookResponse = {
  outcome: 'expired',
  status: 422,
  message: 'the event is more than four days old, and no server redelivers it after three',
};

/**
 * Returns the format of deliveries in GitHub's form: its headers, its signature, its events. It
 * supports no redelivery.
 */
export const gitHubShapedDeliveries = (rules: WorkflowJobRules): DeliveryFormat => ({
  server: rules.server,

  rejectHeaders(headers) {
    if (!PATTERNS.signature.test(header(headers, SIGNATURE))) return BAD_SIGNATURE;
    if (!PATTERNS.event.test(header(headers, EVENT))) return NO_EVENT_NAME;
    if (!PATTERNS.delivery.test(header(headers, DELIVERY))) return NO_DELIVERY_ID;
    return undefined;
  },

  deliveryId: (headers) => header(headers, DELIVERY),

  // The ID is not signed. Together with the signature it identifies this body, so no other delivery
  // can count as a duplicate.
  repetitionKey: (headers) => `${header(headers, DELIVERY)} ${header(headers, SIGNATURE)}`,

  isSigned: (headers, body, secrets) => verifySignature(body, header(headers, SIGNATURE), secrets),

  read(headers, body, nowMs) {
    const event = header(headers, EVENT);
    if (event === 'ping') return PING;
    const json = parseJson(body.toString('utf8'));
    if (json === undefined) return NO_JSON;
    if (event !== 'workflow_job') return { outcome: 'other_event', status: 204 };
    const parsed = parseWorkflowJob(json, nowMs, rules);
    switch (parsed.kind) {
      case 'job':
        return parsed.delivery;
      case 'otherAction':
        return { outcome: 'other_action', status: 204 };
      case 'expired':
        return EXPIRED;
      case 'malformed':
        return NO_EVENT;
    }
  },

  span: deliverySpan,
});

/** Format of webhook deliveries of GitHub. */
export const GITHUB_DELIVERIES: DeliveryFormat = {
  ...gitHubShapedDeliveries(GITHUB_JOBS),

  redelivery: {
    /** GitHub allows 180 such requests a minute. */
    maxPerRound: 150,
    /** An App has one webhook for all its installations. GitHub redelivers to Apps only. */
    webhookOf: (credential) =>
      credential.type === 'app' ? `${credential.apiUrl} ${credential.appId}` : undefined,
  },
};
