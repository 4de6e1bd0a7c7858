/**
 * Keys of the payload codec, as in the key file: one per line, an ID and 32 bytes in base64. The
 * first key encrypts, all keys decrypt.
 */
import { createSecretKey, type KeyObject } from 'node:crypto';

/** AES-256 key. */
export interface CodecKey {
  /** ID of the key. It is stored in clear text with every payload that the key encrypted. */
  readonly id: string;
  readonly key: KeyObject;
}

/** All keys. The first one encrypts. */
export type CodecKeys = readonly [CodecKey, ...CodecKey[]];

const KEY_BYTES = 32;
const LINE = /^([A-Za-z0-9][A-Za-z0-9._-]{0,63})[ \t]+([A-Za-z0-9+/]+={0,2})$/;
const HOW =
  'write an ID of letters, digits, ".", "_" and "-", a space, and the output of "openssl rand -base64 32"';

/**
 * Parses a key file. Empty lines and lines that begin with `#` are ignored.
 * @throws Error that names the line, and contains none of it
 */
export function parseCodecKeys(text: string): CodecKeys {
  const keys: CodecKey[] = [];
  text.split('\n').forEach((raw, index) => {
    const line = raw.trim();
    if (line !== '' && !line.startsWith('#')) keys.push(parseLine(line, index + 1, keys));
  });
  const [first, ...others] = keys;
  if (first === undefined) throw new Error(`has no key: ${HOW}`);
  return [first, ...others];
}

function parseLine(line: string, number: number, before: readonly CodecKey[]): CodecKey {
  const [, id = '', base64 = ''] = LINE.exec(line) ?? [];
  const bytes = Buffer.from(base64, 'base64');
  if (id === '' || bytes.length !== KEY_BYTES)
    throw new Error(`line ${number} must be an ID and a key of ${KEY_BYTES} bytes; ${HOW}`);
  if (before.some((other) => other.id === id))
    throw new Error(`line ${number} repeats the ID of an earlier line; give each key a unique ID`);
  return { id, key: createSecretKey(bytes) };
}
