/** Responses to deliveries. The metric counts outcomes; docs/configuration.md lists them. */

/** Response to one delivery. */
export interface WebhookResponse {
  readonly outcome: string;
  readonly status: number;
  readonly message?: string;
}

/**
 * Maximum size of a body (bytes). GitHub permits 25 MB, but a job takes a few KB and each of its
 * steps 0.3 KB.
 */
export const BODY_LIMIT = 1024 * 1024;

/** Temporal has accepted the event. */
export const ACCEPTED: WebhookResponse = { outcome: 'accepted', status: 202, message: 'accepted' };
/** The same delivery was accepted before. */
export const DUPLICATE: WebhookResponse = {
  outcome: 'duplicate',
  status: 202,
  message: 'accepted before',
};
/** The CI server has sent a test delivery. */
export const PING: WebhookResponse = { outcome: 'ping', status: 200, message: 'pong' };
/** No runner of this installation runs the job, and no set serves it. */
export const NO_MATCH: WebhookResponse = { outcome: 'no_match', status: 204 };
/** Like {@link NO_MATCH}, for a job without labels. Only sets with `groupJobs` serve such jobs. */
export const NO_LABELS: WebhookResponse = { outcome: 'no_labels', status: 204 };

/** The signature matches none of the secrets. */
export const BAD_SIGNATURE: WebhookResponse = {
  outcome: 'bad_signature',
  status: 401,
  message: 'the signature is wrong: set the same secret here and at the CI server',
};
/** Returns the response to a request that is not a delivery of the CI server. */
export const malformed = (message: string): WebhookResponse => ({
  outcome: 'malformed',
  status: 400,
  message,
});
/** The body is not valid JSON. */
export const NO_JSON = malformed('the body is not JSON');
/** The content type of the request is not JSON. */
export const WRONG_TYPE: WebhookResponse = {
  outcome: 'malformed',
  status: 415,
  message: "the body is not JSON: set the webhook's content type to application/json",
};
/** The body exceeds {@link BODY_LIMIT}. */
export const TOO_LARGE: WebhookResponse = {
  outcome: 'too_large',
  status: 413,
  message: `the body is over ${BODY_LIMIT / 1024} KiB, which is more than is taken: subscribe the webhook to events of jobs alone`,
};
/**
 * The body is incomplete. The sender was too slow or has disconnected, so it does not receive this
 * response.
 */
export const INCOMPLETE: WebhookResponse = {
  outcome: 'incomplete',
  status: 400,
  message: 'the body did not arrive',
};

/** Too many deliveries are in progress. Redelivery sends the event again. */
export const OVERLOADED: WebhookResponse = {
  outcome: 'overloaded',
  status: 503,
  message: 'too many deliveries are in progress; redeliver later',
};
/** Temporal has not accepted the event. Redelivery sends it again. */
export const UNAVAILABLE: WebhookResponse = {
  outcome: 'temporal_unavailable',
  status: 503,
  message: 'Temporal does not accept the event now: deliver it again later',
};
