/** Responses to deliveries. The metric counts outcomes; docs/configuration.md lists them. */

export interface WebhookResponse {
  readonly outcome: string;
  readonly status: number;
  readonly message?: string;
}

/** GitHub's own cap is 25 MB, but a job is some KB, and each of its steps 0.3 KB. */
export const BODY_LIMIT = 1024 * 1024;

export const ACCEPTED: WebhookResponse = { outcome: 'accepted', status: 202, message: 'accepted' };
export const DUPLICATE: WebhookResponse = {
  outcome: 'duplicate',
  status: 202,
  message: 'accepted before',
};
export const PING: WebhookResponse = { outcome: 'ping', status: 200, message: 'pong' };
/** No runner of ours runs the job, and no set covers it. */
export const NO_MATCH: WebhookResponse = { outcome: 'no_match', status: 204 };
/** As {@link NO_MATCH}, of a job without labels, which is only for sets that say `groupJobs`. */
export const NO_LABELS: WebhookResponse = { outcome: 'no_labels', status: 204 };

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
export const NO_JSON = malformed('the body is not JSON');
export const WRONG_TYPE: WebhookResponse = {
  outcome: 'malformed',
  status: 415,
  message: "the body is not JSON: set the webhook's content type to application/json",
};
export const TOO_LARGE: WebhookResponse = {
  outcome: 'too_large',
  status: 413,
  message: `the body is over ${BODY_LIMIT / 1024} KiB, which is more than is taken: subscribe the webhook to events of jobs alone`,
};
/** Nobody reads this: its sender was too slow, has hung up, or was cut off. */
export const INCOMPLETE: WebhookResponse = {
  outcome: 'incomplete',
  status: 400,
  message: 'the body did not arrive',
};

export const OVERLOADED: WebhookResponse = {
  outcome: 'overloaded',
  status: 503,
  message: 'too much is under way: deliver it again later',
};
export const UNAVAILABLE: WebhookResponse = {
  outcome: 'temporal_unavailable',
  status: 503,
  message: 'Temporal does not accept the event now: deliver it again later',
};
