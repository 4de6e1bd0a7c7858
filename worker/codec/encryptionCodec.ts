/** Encrypts what goes to Temporal as payload, and decrypts what comes from there (https://docs.temporal.io/payload-codec). */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { Payload, PayloadCodec } from '@temporalio/common';
import proto from '@temporalio/proto';
import { CODEC_KEY_FILE, type CodecKeyFile } from './codecKeyFile.ts';

/** A payload cannot be read with the keys that are at hand. The message names the key's id and the setting. */
export class PayloadKeyError extends Error {
  override readonly name = 'PayloadKeyError';
}

/** The names of Temporal's own samples: tools know them. */
const ENCODING = 'binary/encrypted';
const CIPHER = 'aes-256-gcm';
/** 96 bits, at random (NIST SP 800-38D, 8.2.2): a key is good for 2^32 payloads. */
const IV_BYTES = 12;
const TAG_BYTES = 16;

const wire = proto.temporal.api.common.v1.Payload;
const text = (bytes: Uint8Array | null | undefined): string =>
  Buffer.from(bytes ?? []).toString('utf8');

/** AES-256-GCM. What says how a payload was encrypted stands beside it in clear, and is authenticated with it. */
export class EncryptionCodec implements PayloadCodec {
  readonly #file: CodecKeyFile | undefined;

  /** @param file - absent: nothing is encrypted, and what is encrypted is an error that says so */
  constructor(file: CodecKeyFile | undefined) {
    this.#file = file;
  }

  /** Whether payloads leave encrypted. */
  get encrypts(): boolean {
    return this.#file !== undefined;
  }

  async encode(payloads: Payload[]): Promise<Payload[]> {
    if (this.#file === undefined) return payloads;
    const [{ id, key }] = this.#file.keys();
    const metadata = {
      encoding: Buffer.from(ENCODING),
      'encryption-cipher': Buffer.from(CIPHER),
      'encryption-key-id': Buffer.from(id),
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

  /** What was not encrypted, as before there was a key, is read as it is. @throws PayloadKeyError */
  async decode(payloads: Payload[]): Promise<Payload[]> {
    return payloads.map((payload) =>
      text(payload.metadata?.['encoding']) === ENCODING ? this.#decrypt(payload) : payload,
    );
  }

  #decrypt({ metadata, data }: Payload): Payload {
    const id = text(metadata?.['encryption-key-id']);
    const shown = JSON.stringify(id.slice(0, 64));
    if (this.#file === undefined)
      throw new PayloadKeyError(
        `this is encrypted with the key ${shown}: set ${CODEC_KEY_FILE} to the file that has it`,
      );
    const found = this.#file.keys().find((key) => key.id === id);
    if (found === undefined)
      throw new PayloadKeyError(
        `this is encrypted with the key ${shown}, which the file of ${CODEC_KEY_FILE} does not have: add it there, after the first`,
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
        `this was encrypted with another key of the id ${shown} than the file of ${CODEC_KEY_FILE} has, or was changed since: give each key an id of its own`,
        { cause: error },
      );
    }
  }
}

/** What stands beside the data in clear. */
function authenticated(metadata: Readonly<Record<string, Uint8Array>>): Buffer {
  return Buffer.from(
    JSON.stringify(
      ['encoding', 'encryption-cipher', 'encryption-key-id'].map((name) => text(metadata[name])),
    ),
  );
}
