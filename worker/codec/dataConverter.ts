/** Temporal's data converter with Holdfast's codec: the same for Worker and Client. */
import { fileURLToPath } from 'node:url';
import type { DataConverter } from '@temporalio/common';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { CODEC_KEY_FILE, CodecKeyFile, type OnReadError } from './codecKeyFile.ts';
import { EncryptionCodec } from './encryptionCodec.ts';

/** The bundle of the workflows names the same file. */
export const FAILURE_CONVERTER_PATH = fileURLToPath(
  new URL(
    import.meta.url.endsWith('.js') ? 'failureConverter.cjs' : 'failureConverter.cts',
    import.meta.url,
  ),
);

export interface EncryptedDataConverterOptions {
  /** The file of the keys: on each line an id and 32 bytes in base64. The first encrypts, all decrypt. Read again when it changes. */
  readonly keyFile: string;
  /** Told when the file has become unreadable: the keys of before are used on. @default nobody is */
  readonly onUnreadable?: OnReadError;
}

/**
 * What a Worker and a Client of yours need to speak with those of Holdfast that have `HOLDFAST_CODEC_KEY_FILE`: give it to both.
 * @throws Error on one line, which names the file and the fix
 */
export function createEncryptedDataConverter({
  keyFile,
  onUnreadable,
}: EncryptedDataConverterOptions): DataConverter {
  return {
    payloadCodecs: [new EncryptionCodec(new CodecKeyFile(keyFile, onUnreadable))],
    failureConverterPath: FAILURE_CONVERTER_PATH,
  };
}

/** Without keys: sends in clear, and says of what is encrypted which setting is missing. */
const CLEAR: DataConverter = { payloadCodecs: [new EncryptionCodec(undefined)] };

/** @param keyFile - of the settings, if any @throws Error on one line, which names the setting and the fix */
export function dataConverterOf(
  keyFile: string | undefined,
  onUnreadable?: OnReadError,
): DataConverter {
  if (keyFile === undefined) return CLEAR;
  try {
    return createEncryptedDataConverter({ keyFile, ...omitUndefined({ onUnreadable }) });
  } catch (error) {
    throw new Error(`${CODEC_KEY_FILE}: ${(error as Error).message}`, { cause: error });
  }
}

/** Whether payloads leave a Worker or Client with this data converter in another form than their own. */
export function encrypts({ payloadCodecs = [] }: DataConverter = {}): boolean {
  return payloadCodecs.some((codec) => !(codec instanceof EncryptionCodec) || codec.encrypts);
}
