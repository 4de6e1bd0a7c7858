/** What the head of a request tells of a delivery that cannot be good, before anything of its body is read. Pure. */
import {
  BAD_SIGNATURE,
  BODY_LIMIT,
  NO_DELIVERY_ID,
  NO_EVENT_NAME,
  TOO_LARGE,
  WRONG_TYPE,
  type WebhookResponse,
} from './webhookResponses.ts';

export type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** With or without parameters (RFC 9110, 8.3). */
const JSON_TYPE = /^application\/json\s*(;|$)/i;
/** Of a header that is there twice, Node makes one with a comma, which none of these lets pass. */
const SIGNATURE = /^sha256=[0-9a-f]{64}$/;
const EVENT_NAME = /^[a-z][a-z_]{0,63}$/;
/** GitHub's and Gitea's are UUIDs. */
const DELIVERY_ID = /^[\w-]{1,100}$/;

/** The first row that matches. @returns `undefined`: the body is to be read */
export function headerRejection(headers: Headers): WebhookResponse | undefined {
  if (!JSON_TYPE.test(header(headers, 'content-type'))) return WRONG_TYPE;
  if (Number(headers['content-length']) > BODY_LIMIT) return TOO_LARGE;
  if (!SIGNATURE.test(header(headers, 'x-hub-signature-256'))) return BAD_SIGNATURE;
  if (!EVENT_NAME.test(header(headers, 'x-github-event'))) return NO_EVENT_NAME;
  if (!DELIVERY_ID.test(header(headers, 'x-github-delivery'))) return NO_DELIVERY_ID;
  return undefined;
}

/** Cut to a size that is fit for a log. */
export function header(headers: Headers, name: string): string {
  const value = headers[name];
  return typeof value === 'string' ? value.slice(0, 101) : '';
}
