import { z } from 'zod';
import { scopeKey } from '../../core/input/timeoutPolicy.ts';
import { isCiId } from '../../core/domain/ciId.ts';
import { CI_SERVER_KINDS, DEFAULT_CI_SERVER } from '../../core/domain/ciServerKind.ts';
import { patternError } from '../../core/domain/filterPattern.ts';
import { isObject } from '../../core/domain/isObject.ts';
import { isGitHubCloud } from './github/addresses.ts';

const httpUrl = z
  .url({ protocol: /^https?$/, error: 'must be an http:// or https:// URL' })
  .transform((url) => url.replace(/\/+$/, ''));

const nonEmpty = z.string().min(1, 'must not be empty');
const appNumber = z
  .union([z.number().int().positive(), z.string().regex(/^[1-9]\d*$/, 'must be a number')])
  .transform(Number);

/** Adds an issue to the context if the pattern is invalid. Never throws. */
function checkPattern(pattern: string, context: z.RefinementCtx): void {
  const fault = patternError(pattern);
  if (fault !== undefined) context.addIssue({ code: 'custom', message: fault });
}

const usage = {
  /**
   * Scopes that the credential may be used for: organizations (`acme`, with their repositories),
   * repositories (`acme/web`) or enterprises (`enterprises/big`). Anyone who may start a workflow
   * may use it there. Default: wherever its secret has access.
   */
  scopes: z.array(scopeKey).min(1, 'must name at least one').optional(),
  /**
   * Labels that runners may be registered with, as filter patterns such as `ci-*`. Case is ignored.
   * `self-hosted`, which every runner has, is always permitted. Default: all.
   */
  labels: z.array(nonEmpty.superRefine(checkPattern)).min(1, 'must name at least one').optional(),
  /**
   * IDs of the runner groups that runners may be registered in. Static runners cannot be registered
   * with such a credential, because their token is valid for every group of the scope. Default:
   * all.
   */
  groups: z
    .array(z.string().refine(isCiId, 'must be an id in quotes'))
    .min(1, 'must name at least one')
    .optional(),
  /**
   * Whether lost jobs may run again with this credential (`rerun` of a runner). It needs the
   * permissions `actions: write` and `checks: read`.
   * @default false
   */
  reruns: z.boolean().default(false),
  /**
   * Whether runners may join groups that public repositories may use. There, anyone who opens a
   * pull request may run code on a runner.
   */
  allowPublicRepositories: z.boolean().default(true),
  /**
   * Task queues whose workers may use the credential, so that several workers may read one file.
   * Default: all.
   */
  taskQueues: z.array(nonEmpty).min(1, 'must name at least one').optional(),
};

const KINDS = CI_SERVER_KINDS.map((kind) => `"${kind}"`).join(', ');
const serverError = (server: unknown): string =>
  server === undefined
    ? `is missing, and another credential names another kind of CI server; must be one of ${KINDS}`
    : `unknown kind of CI server; must be one of ${KINDS}`;

const serverSettings = {
  /**
   * Kind of CI server.
   * @default "github" (github.com, GitHub Enterprise Cloud with data residency, GitHub Enterprise
   * Server), unless another credential names another kind. The other kind is "gitea"
   */
  server: z.enum(CI_SERVER_KINDS, { error: ({ input }) => serverError(input) }),
  /**
   * Base URL of the REST API. For GitHub Enterprise Server: `https://HOST/api/v3`. For Gitea:
   * `https://HOST/api/v1`.
   * @default "https://api.github.com"
   */
  apiUrl: httpUrl.default('https://api.github.com'),
  /**
   * URL at which runners register (`config.sh --url`), or at which runners of Gitea connect.
   * Default: derived from `apiUrl`.
   */
  webUrl: httpUrl.optional(),
  /**
   * HTTP(S) proxy, `http://[user:password@]host:port`. Default: HTTPS_PROXY / HTTP_PROXY / NO_PROXY
   * of the environment.
   */
  proxy: httpUrl.optional(),
  /**
   * PEM file with certificate authorities to trust in addition to the built-in ones. Read at start.
   */
  caFile: nonEmpty.optional(),
  /** Maximum duration of one request (s). @default 30 */
  requestTimeoutSeconds: z.number().positive().max(300).default(30),
  /**
   * Maximum concurrent requests with this credential in one process. GitHub permits 100 over all
   * processes.
   * @default 90
   */
  maxInFlight: z.number().int().min(1).max(100).default(90),
  /**
   * Maximum points per minute and endpoint for one process (a read is 1, a write 5). 0 sets no
   * limit. Default: 900 (GitHub's limit: 180 writes) for github.com and *.ghe.com; 0 elsewhere,
   * because rate limits are disabled by default in GitHub Enterprise Server.
   */
  pointsPerMinute: z.number().int().min(0).optional(),
};

/**
 * Function that returns a secret. It is called for every request, so the secret may be rotated at
 * any time.
 */
export type SecretProvider = () => string | Promise<string>;

// A function cannot be written in JSON or YAML. Only code passes one; a settings file still names
// the location of its secret.
const secretProvider = z.custom<SecretProvider>((value) => typeof value === 'function', {
  error: 'must be a function that returns the secret',
});

const patCredential = z.strictObject({
  type: z.literal('pat'),
  /** File with the token. It is read for every request, so it may be rotated at any time. */
  tokenFile: nonEmpty.optional(),
  /** Environment variable with the token. */
  tokenEnv: nonEmpty.optional(),
  /** Function that returns the token. */
  tokenProvider: secretProvider.optional(),
  ...usage,
  ...serverSettings,
});

const appCredential = z.strictObject({
  type: z.literal('app'),
  appId: appNumber,
  installationId: appNumber,
  /**
   * File with the app's private key (PEM). It is read for every request, so it may be rotated at
   * any time.
   */
  privateKeyFile: nonEmpty.optional(),
  /** Environment variable with the app's private key (PEM; line breaks may be written `\n`). */
  privateKeyEnv: nonEmpty.optional(),
  /** Function that returns the app's private key (PEM). */
  privateKeyProvider: secretProvider.optional(),
  ...usage,
  ...serverSettings,
});

const sourceFields = {
  pat: ['tokenFile', 'tokenEnv', 'tokenProvider'],
  app: ['privateKeyFile', 'privateKeyEnv', 'privateKeyProvider'],
} as const;

const credential = z
  .discriminatedUnion('type', [patCredential, appCredential])
  .superRefine((value, context) => {
    const fields = sourceFields[value.type];
    const [file, env] = fields;
    const given = fields.filter((field) => (value as Record<string, unknown>)[field] !== undefined);
    if (given.length !== 1) {
      const problem = given.length === 0 ? 'has no secret' : 'has more than one secret';
      context.addIssue({
        code: 'custom',
        path: [file],
        message: `${problem}: give exactly one of ${file} and ${env}, or in code ${value.type === 'pat' ? 'tokenProvider' : 'privateKeyProvider'}`,
      });
    }
    if (value.server === 'gitea') {
      for (const [path, message] of giteaProblems(value))
        context.addIssue({ code: 'custom', path: [path], message });
    }
    if (/^https?:\/\/(www\.)?github\.com(\/|$)/.test(value.apiUrl)) {
      context.addIssue({
        code: 'custom',
        path: ['apiUrl'],
        message:
          'is the web address: the API of github.com is https://api.github.com (leave the field out)',
      });
    }
  });

/** Returns what a credential of Gitea must not or must have, as fields with messages. */
function giteaProblems({
  type,
  apiUrl,
  groups,
  reruns,
}: {
  type: string;
  apiUrl: string;
  groups?: unknown;
  reruns: boolean;
}): [field: string, message: string][] {
  return [
    ...(type === 'pat' ? [] : [['type', 'must be "pat" for Gitea, which has no Apps'] as const]),
    ...(apiUrl.endsWith('/api/v1')
      ? []
      : [['apiUrl', 'must be the API of the Gitea server: https://HOST/api/v1'] as const]),
    ...(groups === undefined ? [] : [['groups', 'must not be set: Gitea has no groups'] as const]),
    ...(reruns ? [['reruns', 'must not be true for Gitea'] as const] : []),
  ].map(([field, message]) => [field, message]);
}

const credentialName = z
  .string()
  .regex(
    /^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$/i,
    "a name is 1 to 63 letters, digits, - or _ (it becomes part of a task queue's name)",
  );

/** Schema of the worker's `credentials` setting: an object from name to credential. */
export const credentialsSchema = z.record(credentialName, credential);

/**
 * One credential with its defaults filled in. It contains the source of the secret, never the
 * secret.
 */
export type Credential = z.output<typeof credential>;
/** Credentials of a worker, by name. */
export type Credentials = Readonly<Record<string, Credential>>;

/** Invalid credentials. Each problem is one line with the field and the fix. */
export class CredentialsError extends Error {
  override readonly name = 'CredentialsError';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`credentials: ${problems.join('; ')}`);
    this.problems = problems;
  }
}

const secretFields = new Set(['token', 'privateKey', 'password', 'key']);

function describe(issue: z.core.$ZodIssue): string[] {
  const at = ['credentials', ...issue.path].join('.');
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) =>
      secretFields.has(key)
        ? `${at}.${key}: secrets do not belong in the configuration: put it into a file or an environment variable and name that (${key}File or ${key}Env)`
        : `${at}.${key}: unknown field`,
    );
  }
  if (issue.code === 'invalid_union') return [`${at}: must be "pat" or "app"`];
  if (issue.code === 'invalid_key')
    return [`${at}: ${issue.issues.map((inner) => inner.message).join(', ')}`];
  return [`${at}: ${issue.message}`];
}

/** Fills in the kind of CI server, unless a credential names another kind than the default. */
function withServers(raw: unknown): unknown {
  if (!isObject(raw)) return raw;
  const serverOf = (credential: unknown): unknown =>
    (isObject(credential) ? credential['server'] : undefined) ?? DEFAULT_CI_SERVER;
  if (Object.values(raw).some((each) => serverOf(each) !== DEFAULT_CI_SERVER)) return raw;
  return Object.fromEntries(
    Object.entries(raw).map(([name, each]) => [
      name,
      isObject(each) ? { ...each, server: serverOf(each) } : each,
    ]),
  );
}

/**
 * Checks the credentials and fills in the defaults.
 * @throws CredentialsError with every problem at once
 */
export function parseCredentials(raw: unknown): Credentials {
  const result = credentialsSchema.safeParse(withServers(raw));
  if (!result.success) throw new CredentialsError(result.error.issues.flatMap(describe));
  return result.data;
}

/** Returns the credentials that the workers of a task queue may use. */
export function credentialsForTaskQueue(credentials: Credentials, taskQueue: string): Credentials {
  return Object.fromEntries(
    Object.entries(credentials).filter(
      ([, { taskQueues }]) => taskQueues?.includes(taskQueue) !== false,
    ),
  );
}

/**
 * Returns the maximum points per minute and endpoint of this credential, or `undefined` for no
 * limit.
 */
export function pointsPerMinute(settings: Credential): number | undefined {
  const points = settings.pointsPerMinute ?? (isGitHubCloud(settings.apiUrl) ? 900 : 0);
  return points === 0 ? undefined : points;
}
