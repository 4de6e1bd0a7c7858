/**
 * Payload codec that encrypts the payloads that are sent to Temporal
 * (https://docs.temporal.io/payload-codec).
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import {
  defaultPayloadConverter,
  type Payload,
  type PayloadCodec,
  type SerializationContext,
} from '@temporalio/common';
import proto from '@temporalio/proto';
import { LRUCache } from 'lru-cache';
import { REJECTED_PAYLOAD } from '../../core/domain/rejectedPayload.ts';
import { CODEC_KEY_FILE, type CodecKeyFile } from './codecKeyFile.ts';
import { payloadRejection, type PayloadBinding } from './payloadGate.ts';

/**
 * Error for a payload that none of the available keys decrypts. Its message names the ID of the key
 * and the setting.
 */
export class PayloadKeyError extends Error {
  override readonly name = 'PayloadKeyError';
}

/** Requirement of a Worker that accepts encrypted payloads only. */
export interface EncryptionRequirement {
  /**
   * Patterns (`*`) of workflow ids that may receive payloads encrypted without a workflow id, as
   * the codec server does for the `temporal` command.
   */
  readonly unboundWorkflowIds: readonly string[];
  /**
   * Called once for each workflow and reason, because every replay decodes a payload again.
   * @default rejections are not reported
   */
  readonly onRejected?: (rejection: PayloadRejection) => void;
}

/** Payload that a Worker has rejected. */
export interface PayloadRejection {
  readonly reason: string;
  readonly workflowId: string | undefined;
}

/** Metadata names of Temporal's samples, which other tools recognize. */
const ENCODING = 'binary/encrypted';
const CIPHER = 'aes-256-gcm';
/**
 * Size of the random IV (bytes). With 96 bits, one key may encrypt 2^32 payloads (NIST SP 800-38D,
 * 8.2.2).
 */
const IV_BYTES = 12;
const TAG_BYTES = 16;
/** Maximum number of reported rejections that are remembered. */
const MAX_REPORTED = 1_000;
/** Metadata in clear text, authenticated together with the data. */
const METADATA = {
  encoding: 'encoding',
  cipher: 'encryption-cipher',
  keyId: 'encryption-key-id',
  namespace: 'encryption-namespace',
  workflowId: 'encryption-workflow-id',
} as const;

const wire = proto.temporal.api.common.v1.Payload;
const text = (bytes: Uint8Array | null | undefined): string =>
  Buffer.from(bytes ?? []).toString('utf8');

/**
 * AES-256-GCM. The key's ID and, where the SDK provides it, the workflow that a payload is for are
 * stored in clear text and authenticated with the data.
 */
export class EncryptionCodec implements PayloadCodec {
  readonly #file: CodecKeyFile | undefined;
  readonly #required: EncryptionRequirement | undefined;
  readonly #reported = new LRUCache<string, true>({ max: MAX_REPORTED });

  /**
   * Creates the codec.
   * @param file - keys. Without them nothing is encrypted, and decoding an encrypted payload fails
   * @param required - requirement of a Worker that accepts encrypted payloads only.
   * @default every payload is accepted
   */
  constructor(file: CodecKeyFile | undefined, required?: EncryptionRequirement) {
    this.#file = file;
    this.#required = required;
  }

  /** Whether payloads are encrypted. */
  get encrypts(): boolean {
    return this.#file !== undefined;
  }

  async encode(payloads: Payload[], context?: SerializationContext): Promise<Payload[]> {
    if (this.#file === undefined) return payloads;
    const [{ id, key }] = this.#file.keys();
    const metadata = {
      [METADATA.encoding]: Buffer.from(ENCODING),
      [METADATA.cipher]: Buffer.from(CIPHER),
      [METADATA.keyId]: Buffer.from(id),
      ...(context && { [METADATA.namespace]: Buffer.from(context.namespace) }),
      ...(context?.workflowId && { [METADATA.workflowId]: Buffer.from(context.workflowId) }),
    };
    return payloads.map((payload) => {
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv(CIPHER, key, iv, { authTagLength: TAG_BYTES }).setAAD(
        authenticated(metadata),
      );
      return {
        metadata,
        data: Buffer.concat([
          iv,
          cipher.update(wire.encode(payload).finish()),
          cipher.final(),
          cipher.getAuthTag(),
        ]),
      };
    });
  }

  /**
   * Decrypts payloads. A payload in clear text is returned unchanged, unless encryption is
   * required. Then it is replaced by the text {@link REJECTED_PAYLOAD} with the reason, which every
   * input check rejects. An error would fail the workflow task again and again.
   * @throws PayloadKeyError
   */
  async decode(payloads: Payload[], context?: SerializationContext): Promise<Payload[]> {
    return payloads.map((payload) => {
      const encrypted = text(payload.metadata?.[METADATA.encoding]) === ENCODING;
      const read = encrypted ? this.#decrypt(payload) : payload;
      return this.#rejected({ encrypted, bound: bindingOf(payload) }, context) ?? read;
    });
  }

  #rejected(
    facts: { readonly encrypted: boolean; readonly bound: PayloadBinding },
    context: SerializationContext | undefined,
  ): Payload | undefined {
    if (this.#required === undefined) return undefined;
    const { unboundWorkflowIds, onRejected } = this.#required;
    const reason = payloadRejection({ ...facts, context, unboundWorkflowIds });
    if (reason === undefined) return undefined;
    const key = `${context?.workflowId ?? ''}\n${reason}`;
    if (!this.#reported.has(key)) onRejected?.({ reason, workflowId: context?.workflowId });
    this.#reported.set(key, true);
    return defaultPayloadConverter.toPayload(`${REJECTED_PAYLOAD}${reason}`);
  }

  #decrypt({ metadata, data }: Payload): Payload {
    const id = text(metadata?.[METADATA.keyId]);
    const shown = JSON.stringify(id.slice(0, 64));
    if (this.#file === undefined)
      throw new PayloadKeyError(
        `payload is encrypted with the key ${shown}; set ${CODEC_KEY_FILE} to the file that has it`,
      );
    const found = this.#file.keys().find((key) => key.id === id);
    if (found === undefined)
      throw new PayloadKeyError(
        `payload is encrypted with the key ${shown}, which is missing in the file of ${CODEC_KEY_FILE}; add it there, after the first`,
      );
    const bytes = Buffer.from(data ?? []);
    try {
      const decipher = createDecipheriv(CIPHER, found.key, bytes.subarray(0, IV_BYTES), {
        authTagLength: TAG_BYTES,
      });
      decipher.setAAD(authenticated(metadata ?? {})).setAuthTag(bytes.subarray(-TAG_BYTES));
      return wire.decode(
        Buffer.concat([decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES)), decipher.final()]),
      );
    } catch (error) {
      throw new PayloadKeyError(
        `payload was changed, or encrypted with a key of the ID ${shown} that is not the one in the file of ${CODEC_KEY_FILE}; give each key a unique ID`,
        { cause: error },
      );
    }
  }
}

function bindingOf({ metadata }: Payload): PayloadBinding {
  const [namespace, workflowId] = [METADATA.namespace, METADATA.workflowId].map(
    (name) => text(metadata?.[name]) || undefined,
  );
  return { ...(namespace && { namespace }), ...(workflowId && { workflowId }) };
}

function authenticated(metadata: Readonly<Record<string, Uint8Array>>): Buffer {
  return Buffer.from(JSON.stringify(Object.values(METADATA).map((name) => text(metadata[name]))));
}
