/** Decodes payloads and failure messages that the client returns encoded. */
import type { LoadedDataConverter, Payload } from '@temporalio/common';

/** Fields of a failure that are read here. */
interface RawFailure {
  readonly message?: string | null;
  readonly encodedAttributes?: Payload | null;
  readonly cause?: RawFailure | null;
}

/**
 * Returns the first payload, decrypted.
 * @throws PayloadKeyError
 */
export async function decodeFirstPayload(
  { payloadCodecs }: LoadedDataConverter,
  payloads: readonly Payload[] | null | undefined,
): Promise<Payload | undefined> {
  let read = (payloads ?? []).slice(0, 1);
  for (const codec of payloadCodecs.toReversed()) read = await codec.decode(read);
  return read[0];
}

/**
 * Returns the different messages of a failure and of its causes.
 * @throws PayloadKeyError
 */
export async function failureText(
  converter: LoadedDataConverter,
  failure: RawFailure | null | undefined,
): Promise<string | undefined> {
  const messages: string[] = [];
  for (let each = failure; each; each = each.cause) {
    const message = await failureMessage(converter, each);
    if (message && !messages.includes(message)) messages.push(message);
  }
  return messages.length === 0 ? undefined : messages.join(': ');
}

/**
 * Returns the message of a failure. If failures are encoded, the message in clear text contains
 * only that fact.
 * @throws PayloadKeyError
 */
export async function failureMessage(
  converter: LoadedDataConverter,
  { message, encodedAttributes }: RawFailure,
): Promise<string | undefined> {
  if (!encodedAttributes) return message ?? undefined;
  const payload = await decodeFirstPayload(converter, [encodedAttributes]);
  const attributes =
    payload && converter.payloadConverter.fromPayload<{ message?: unknown } | null>(payload);
  return typeof attributes?.message === 'string' ? attributes.message : (message ?? undefined);
}
