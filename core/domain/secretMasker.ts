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
 * encoded: in base64 (as Kubernetes shows it, or as a part of more, such as `user:password`), in a
 * URL, as JSON and in hexadecimal.
 */
export function secretVariants(secret: string): string[] {
  const trimmed = secret.trim();
  if (!isLong(trimmed)) return [];
  const lines = secret.split('\n').map((text) => text.trim());
  return [...new Set([trimmed, ...lines, ...encoded(trimmed), ...base64Forms(secret)])].filter(
    isLong,
  );
}

/** Returns a text in a URL, as JSON and in hexadecimal. */
function encoded(text: string): string[] {
  const url = encodeURIComponent(text.toWellFormed());
  const hex = Array.from(utf8(text), (byte) => byte.toString(16).padStart(2, '0')).join('');
  return [
    url,
    url.replaceAll('%20', '+'),
    url.replaceAll(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
    JSON.stringify(text).slice(1, -1),
    hex,
    hex.toUpperCase(),
  ];
}

/** Returns a text in base64 and base64url, also after one or two bytes and before more of them. */
function base64Forms(text: string): string[] {
  const forms = [text, text.trim()].flatMap((each) => [
    base64(utf8(each)),
    ...[0, 1, 2].map((before) => base64Within(utf8(each.trim()), before)),
  ]);
  return forms.flatMap((form) => [form, form.replaceAll('+', '-').replaceAll('/', '_')]);
}

/** Returns those characters of base64 that only depend on the bytes, at an offset of `before`. */
function base64Within(bytes: Uint8Array, before: number): string {
  const whole = base64(joined(new Uint8Array(before), bytes));
  const first = Math.ceil((before * 8) / 6);
  const end = Math.floor(((before + bytes.length) * 8) / 6);
  return whole.slice(first, end);
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
    return this.#pass(joined(this.#held, piece), { isLast: false });
  }

  /** Returns the remaining bytes at the end of the stream. */
  end(): Uint8Array {
    return this.#pass(this.#held, { isLast: true });
  }

  #pass(bytes: Uint8Array, { isLast }: { readonly isLast: boolean }): Uint8Array {
    const out = bytes.slice();
    let coveredTo = this.#covered;
    let at = 0;
    for (; at < bytes.length; at++) {
      const candidates = this.#secrets.get(bytes[at] ?? 0) ?? [];
      if (
        !isLast &&
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
const base64 = (bytes: Uint8Array): string =>
  btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
