/** Checks whether the keys of the payload codec can be read. */
import { CodecKeyFile, CODEC_KEY_FILE } from '../codec/codecKeyFile.ts';
import { oneLine, type HoldfastConfig } from '../settings/config.ts';
import type { Finding } from './finding.ts';

/**
 * Returns whether payloads are encrypted and with which key. An invalid key file is an error with
 * its fix.
 */
export function checkCodec({
  codecKeyFile,
  encryptionRequired,
}: Pick<HoldfastConfig, 'codecKeyFile' | 'encryptionRequired'>): Finding {
  if (codecKeyFile === undefined)
    return {
      level: 'warning',
      message: `payloads are stored in Temporal in plaintext: ${CODEC_KEY_FILE} is not set`,
      fix: `set ${CODEC_KEY_FILE} for all workers, the webhook and the command; see "Payload codec" in docs/security.md`,
    };
  try {
    const [first, ...others] = new CodecKeyFile(codecKeyFile).keys();
    const more =
      others.length === 0
        ? ''
        : `, and read with ${others.map(({ id }) => `"${id}"`).join(', ')} too`;
    const plaintext = encryptionRequired
      ? 'others are rejected'
      : 'others are accepted too (HOLDFAST_CODEC_REQUIRED)';
    return {
      level: 'ok',
      message: `payloads are encrypted with the key "${first.id}"${more}; ${plaintext}`,
    };
  } catch (error) {
    return {
      level: 'error',
      message: `${CODEC_KEY_FILE}: ${oneLine(error)}`,
      fix: 'see "Payload codec" in docs/security.md',
    };
  }
}
