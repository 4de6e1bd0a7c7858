/** Rejects a delivery by its headers, before its body is read. Pure. */
import { header, type Headers } from './requestHeaders.ts';
import type { DeliveryFormat } from './servers/deliveryFormat.ts';
import { BODY_LIMIT, TOO_LARGE, WRONG_TYPE, type WebhookResponse } from './webhookResponses.ts';

/** Matches the media type with or without parameters (RFC 9110, 8.3). */
const JSON_TYPE = /^application\/json\s*(;|$)/i;

/** Returns the response of a rejection, or `undefined` if the body is to be read. */
export function headerRejection(
  format: Pick<DeliveryFormat, 'rejectHeaders'>,
  headers: Headers,
): WebhookResponse | undefined {
  if (!JSON_TYPE.test(header(headers, 'content-type'))) return WRONG_TYPE;
  if (Number(headers['content-length']) > BODY_LIMIT) return TOO_LARGE;
  return format.rejectHeaders(headers);
}
