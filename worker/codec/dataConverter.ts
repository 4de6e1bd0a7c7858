/** Temporal data converter with Holdfast's codec, for Workers and Clients. */
import { fileURLToPath } from 'node:url';
import type { DataConverter } from '@temporalio/common';
import { CODEC_KEY_FILE, CodecKeyFile, type OnReadError } from './codecKeyFile.ts';
import { EncryptionCodec, type EncryptionRequirement } from './encryptionCodec.ts';

/** Path of the failure converter. The bundle of the workflows names the same file. */
export const FAILURE_CONVERTER_PATH = fileURLToPath(
  new URL(
    import.meta.url.endsWith('.js') ? 'failureConverter.cjs' : 'failureConverter.cts',
    import.meta.url,
  ),
);

/** Options of {@link createEncryptedDataConverter}. */
export interface EncryptedDataConverterOptions {
  /**
   * Path of the key file. Each line has an ID and 32 bytes in base64. The first key encrypts, all
   * keys decrypt. The file is read again when it changes.
   */
  readonly keyFile: string;
  /**
   * Called when the file has become unreadable. The previous keys stay in use.
   * @default the failure is not reported
   */
  readonly onUnreadable?: OnReadError;
  /**
   * Requirement that a Worker accepts only payloads that were encrypted for the workflow that
   * receives them. Workflows that started before the key was set cannot continue then.
   * @default payloads in clear text are accepted
   */
  readonly required?: EncryptionRequirement;
}

/**
 * Creates the data converter that your own Workers and Clients need in order to exchange payloads
 * with a Holdfast that has `HOLDFAST_CODEC_KEY_FILE`. Pass it to both.
 * @throws Error with one line that names the file and the fix
 */
export function createEncryptedDataConverter({
  keyFile,
  onUnreadable,
  required,
}: EncryptedDataConverterOptions): DataConverter {
  return {
    payloadCodecs: [new EncryptionCodec(new CodecKeyFile(keyFile, onUnreadable), required)],
    failureConverterPath: FAILURE_CONVERTER_PATH,
  };
}

/**
 * Data converter without keys. It does not encrypt. Its error for an encrypted payload names the
 * missing setting.
 */
const CLEAR: DataConverter = { payloadCodecs: [new EncryptionCodec(undefined)] };

/**
 * Returns the data converter for the settings.
 * @param keyFile - path of the key file; absent: payloads are not encrypted
 * @throws Error with a one-line message that names the setting and the fix
 */
export function dataConverterOf(
  keyFile: string | undefined,
  options: Omit<EncryptedDataConverterOptions, 'keyFile'> = {},
): DataConverter {
  if (keyFile === undefined) return CLEAR;
  try {
    return createEncryptedDataConverter({ keyFile, ...options });
  } catch (error) {
    throw new Error(`${CODEC_KEY_FILE}: ${(error as Error).message}`, { cause: error });
  }
}

/** Whether Workers and Clients with this data converter encode their payloads. */
export function encrypts({ payloadCodecs = [] }: DataConverter = {}): boolean {
  return payloadCodecs.some((codec) => !(codec instanceof EncryptionCodec) || codec.encrypts);
}
