/**
 * Types of setting values. Each rejects an invalid value with the fault and its fix, on one line.
 */
import { parseJson } from '../../core/domain/parseJson.ts';
import { z } from 'zod';
import { parseDuration } from '../../core/domain/duration.ts';

const quote = (value: string): string =>
  JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value);

function parsed<T>(
  parse: (text: string) => T | undefined,
  wrong: (text: string) => string,
): z.ZodPipe<z.ZodString, z.ZodTransform<T, string>> {
  return z.string().transform((text, context): T => {
    const value = parse(text);
    if (value !== undefined) return value;
    context.addIssue({ code: 'custom', message: wrong(text) });
    return z.NEVER;
  });
}

/** Any text. */
export const text = z.string();

/** Duration such as `30s`, `10m`, `1h30m`, converted to ms. */
export const duration = parsed(
  (value) => parseDuration(value),
  (value) => `${quote(value)} is not a duration: write for example 30s, 10m or 1h30m`,
);

/** Duration of at least a second, converted to ms. `off` and 0 become 0. */
export const intervalOrOff = parsed(
  (value) =>
    value === 'off' ? 0 : [parseDuration(value)].find((ms) => ms === 0 || (ms ?? 0) >= 1_000),
  (value) => `${quote(value)} is neither a duration of at least 1s nor off: write for example 5m`,
);

/** Returns the type for a whole number from `min` to `max`. */
export const integer = (min: number, max: number) =>
  parsed(
    (value) =>
      /^\d{1,9}$/.test(value) && Number(value) >= min && Number(value) <= max
        ? Number(value)
        : undefined,
    (value) => `${quote(value)} is not a whole number from ${min} to ${max}`,
  );

/** Returns the type for a value from a fixed list. */
export const enumValue = <const W extends readonly [string, ...string[]]>(...words: W) =>
  parsed(
    (value) => words.find((word): word is W[number] => word === value),
    (value) => `${quote(value)} is not one of ${words.join(', ')}`,
  );

const DNS_LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
/** DNS-1123 label (RFC 1123), as Kubernetes requires for names of namespaces. */
export const dnsLabel = parsed(
  (value) => (DNS_LABEL.test(value) ? value : undefined),
  (value) =>
    `${quote(value)} is not a name: use 1 to 63 lower-case letters, digits and dashes, no dash at either end`,
);

/**
 * Returns the type for a DNS-1123 subdomain (RFC 1123), as Kubernetes requires for names of most
 * objects.
 */
const subdomain = (what: string) =>
  parsed(
    (value) => (/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/.test(value) ? value : undefined),
    (value) =>
      `${quote(value)} is not ${what}: use lower-case letters, digits, dots and dashes, a letter or a digit at both ends`,
  );

/** Name of a Secret. */
export const secretName = subdomain("a Secret's name");

/** Name of a StorageClass. */
export const storageClassName = subdomain("a StorageClass's name");

/** Size of a volume. */
export const volumeSize = parsed(
  (value) => (/^[1-9]\d{0,14}([KMGTPE]i)?$/.test(value) ? value : undefined),
  (value) => `${quote(value)} is not a size: write for example 500Mi or 1Gi`,
);

/** Name of a bucket, not its address. */
export const bucketName = parsed(
  (value) => (/^[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]$/.test(value) ? value : undefined),
  (value) =>
    `${quote(value)} is not a bucket's name: use 3 to 255 letters, digits, dots, dashes and underscores, and no s3:// before it`,
);

/**
 * Address as `host:port`, `[::]:port`, or a port alone (all interfaces). With port 0 the system
 * chooses a free one.
 */
export const listenAddress = parsed(
  (value) => {
    const match = /^(?:(?:\[([0-9a-fA-F:]+)\]|([^:[\]\s]+)):)?(\d{1,5})$/.exec(value);
    const port = Number(match?.[3]);
    return match && port <= 65_535 ? { host: match[1] ?? match[2] ?? '0.0.0.0', port } : undefined;
  },
  (value) =>
    `${quote(value)} is not an address to listen on: write for example 0.0.0.0:8080 or [::]:8080`,
);

/** HTTP or HTTPS URL, without a slash at its end. */
export const httpUrl = parsed(
  (value) => {
    const url = URL.parse(value);
    return url && /^https?:$/.test(url.protocol) && url.username === ''
      ? value.replace(/\/+$/, '')
      : undefined;
  },
  (value) =>
    `${quote(value)} is not a web address: write for example https://github.example.com/api/v3, without user name or password`,
);

/**
 * Command as a JSON array of strings, or as words separated by spaces. Words cannot be quoted: use
 * the array for words that contain spaces.
 */
export const command = parsed(
  (value) => {
    if (!value.trimStart().startsWith('[')) {
      const words = value.split(/\s+/).filter((word) => word !== '');
      return words.length > 0 ? words : undefined;
    }
    const list = z.array(z.string()).min(1).safeParse(parseJson(value));
    return list.success ? list.data : undefined;
  },
  (value) =>
    `${quote(value)} is not a command: write words separated by spaces, or a JSON array such as ["/opt/my runner/run.sh","--once"]`,
);

/** Names of namespaces, separated by commas. */
export const namespaceList = parsed(
  (value) => {
    const names = value.split(',').map((name) => name.trim());
    return names.every((name) => DNS_LABEL.test(name)) ? [...new Set(names)] : undefined;
  },
  (value) =>
    `${quote(value)} is not a list of namespaces: separate their names by commas, as in "ci-web,ci-docs"`,
);

/** Patterns with `*` as a wildcard, separated by commas. */
export const patternList = parsed(
  (value) => {
    const patterns = value.split(',').map((pattern) => pattern.trim());
    return patterns.includes('') ? undefined : patterns;
  },
  (value) =>
    `${quote(value)} is not a list of patterns: separate them by commas, as in "set-*,sweep-*"`,
);
