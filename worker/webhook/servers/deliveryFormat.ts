import type { Credential } from '../../../activities/ciServers/credentials.ts';
import type { CiServerKind } from '../../../core/domain/ciServerKind.ts';
import type { JobDelivery } from '../jobDelivery.ts';
import type { Headers } from '../requestHeaders.ts';
import type { WebhookResponse } from '../webhookResponses.ts';

/**
 * Format in which one kind of CI server sends webhook deliveries. Each kind has one implementation.
 */
export interface DeliveryFormat {
  /** Kind of CI server. Its deliveries go to `/webhooks/<server>`. */
  readonly server: CiServerKind;
  /**
   * Rejects a request that cannot be a delivery, before its body is read. Otherwise returns
   * `undefined`.
   */
  rejectHeaders(headers: Headers): WebhookResponse | undefined;
  /** Returns the ID of the delivery. It is not signed, so it is only for logs and traces. */
  deliveryId(headers: Headers): string;
  /** Returns a key that a delivery shares with its repetitions, and with no other body. */
  repetitionKey(headers: Headers): string;
  /** Whether the body is signed with one of the secrets. */
  isSigned(headers: Headers, body: Buffer, secrets: readonly string[]): boolean;
  /**
   * Reads a delivery with a valid signature. Its content is still untrusted.
   * @param nowMs - used for a time that is missing from the event
   * @returns the response if there is no event to pass on
   */
  read(headers: Headers, body: Buffer, nowMs: number): JobDelivery | WebhookResponse;
  /** Describes the delivery for traces. */
  span(delivery: JobDelivery, deliveryId: string): DeliverySpan;
  /** Redelivery of failed deliveries. Absent: it is never requested from the server. */
  readonly redelivery?: RedeliveryRules;
}

/** Span of a delivery in traces. */
export interface DeliverySpan {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string | number>>;
  /** Trace that the span is part of, as 32 hex digits. @default a new one */
  readonly traceId?: string;
}

/** Limits for requesting redelivery from one kind of CI server. */
export interface RedeliveryRules {
  /** Maximum number of redeliveries requested in one round with one credential. */
  readonly maxPerRound: number;
  /**
   * Identifies the webhook whose failed deliveries the credential can request again. Credentials
   * with the same webhook share it. Returns undefined if the credential cannot.
   */
  webhookOf(credential: Credential): string | undefined;
}
