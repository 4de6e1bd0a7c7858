/**
 * Masks secrets in a stream of bytes: the output and the files of a step, before they are stored or
 * shown. Pure, except for the bytes that {@link SecretMasker} holds back.
 */

/**
 * Minimum length of a secret (bytes). A shorter one (`1`, `yes`) would mask half of a log and is
 * not a secret.
 */
const MIN_SECRET_LENGTH = 4;

const STAR = '*'.charCodeAt(0);

/**
 * Returns the forms in which a secret's value may be printed: without surrounding white space (such
 * as the last line break of a file), each of its lines (a key is rarely printed in one line), and
 * in base64, as Kubernetes shows it.
 */
export function secretVariants(secret: string): string[] {
  if (!isLong(secret.trim())) return [];
  const forms = [secret, ...secret.split('\n')].map((text) => text.trim());
  return [...new Set([...forms, base64(secret), base64(secret.trim())])].filter(isLong);
}

/**
 * Replaces each byte of a secret by `*`, so that sizes and offsets do not change. Pass the chunks
 * in order.
 */
export class SecretMasker {
  readonly #secrets: ReadonlyMap<number, readonly Uint8Array[]>;
  #held = new Uint8Array();
  /** Number of held bytes that belong to a secret that began before them. */
  #covered = 0;

  /** @param forms - see {@link secretVariants} */
  constructor(forms: readonly string[]) {
    this.#secrets = Map.groupBy(
      forms.map(utf8).filter((bytes) => bytes.length > 0),
      ([first = 0]) => first,
    );
  }

  /**
   * Returns the masked bytes that are final. Bytes with which a secret may begin are held back
   * until that is known.
   */
  push(piece: Uint8Array): Uint8Array {
    return this.#pass(joined(this.#held, piece), false);
  }

  /** Returns the remaining bytes at the end of the stream. */
  end(): Uint8Array {
    return this.#pass(this.#held, true);
  }

  #pass(bytes: Uint8Array, last: boolean): Uint8Array {
    const out = bytes.slice();
    let coveredTo = this.#covered;
    let at = 0;
    for (; at < bytes.length; at++) {
      const candidates = this.#secrets.get(bytes[at] ?? 0) ?? [];
      if (
        !last &&
        candidates.some((secret) => at + secret.length > bytes.length && agree(bytes, at, secret))
      )
        break;
      for (const secret of candidates)
        if (at + secret.length <= bytes.length && agree(bytes, at, secret))
          coveredTo = Math.max(coveredTo, at + secret.length);
      if (at < coveredTo) out[at] = STAR;
    }
    this.#held = bytes.slice(at);
    this.#covered = Math.max(0, coveredTo - at);
    return out.subarray(0, at);
  }
}

/** Returns whether both agree as far as they go. */
function agree(bytes: Uint8Array, at: number, secret: Uint8Array): boolean {
  const length = Math.min(secret.length, bytes.length - at);
  for (let index = 1; index < length; index++)
    if (bytes[at + index] !== secret[index]) return false;
  return true;
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const all = new Uint8Array(first.length + second.length);
  all.set(first);
  all.set(second, first.length);
  return all;
}

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);
const isLong = (text: string): boolean => utf8(text).length >= MIN_SECRET_LENGTH;
const base64 = (text: string): string =>
  btoa(Array.from(utf8(text), (byte) => String.fromCharCode(byte)).join(''));
