import type { ScopePath } from './types.ts';

/** A personal access token of the simulator. */
export interface SimulatedToken {
  token: string;
  /** Shown in counters instead of the secret. @default "pat-<n>" */
  name?: string;
  /**
   * Scopes that it can access: scope paths with `*` as wildcard (`orgs/acme`, `repos/acme/*`, `*`).
   * @default ["*"]
   */
  scopes?: ScopePath[];
  /** Permission. With `read` every change returns 403. @default "admin" */
  permission?: 'admin' | 'read';
}

/** A GitHub App with its installations. */
export interface SimulatedApp {
  id: number;
  clientId?: string;
  slug?: string;
  /**
   * Public key (PEM). With it the signature of the JWT is verified; otherwise only its format and
   * times.
   */
  publicKey?: string;
  installations: SimulatedInstallation[];
}

export interface SimulatedInstallation {
  id: number;
  /** Login of the organization or user. */
  account: string;
  /** @default [`orgs/<account>`, `repos/<account>/*`] */
  scopes?: ScopePath[];
  permission?: 'admin' | 'read';
}

/** A runner group. Group 1 (Default) always exists. */
export interface SimulatedGroup {
  id: number;
  name: string;
  /** The scope it belongs to. */
  scope: ScopePath;
  /**
   * Status of generate-jitconfig for the group. GitHub returns 403 or 404 for a group that cannot
   * be used. @default 201
   */
  jitStatus?: 201 | 403 | 404;
}

/** Receiver of webhook events. */
export interface WebhookTarget {
  url: string;
  secret: string;
  /** @default 1 */
  hookId?: number;
}

/** Dates until which GitHub accepts a runner version (ISO 8601). @default no end */
export interface VersionDeadline {
  /** Date until which it gets jobs. */
  runtime?: string;
  /** Date until which it can register. */
  registration?: string;
}

/** Options of the simulator. */
export interface SimulatorOptions {
  /** @default 0 (any free port) */
  port?: number;
  /** @default "127.0.0.1" */
  host?: string;
  /** The address runners use, put into the JIT config. @default the listening address */
  publicUrl?: string;
  webhook?: WebhookTarget;
  /** @default one token `ghp_simulator` that sees everything */
  tokens?: SimulatedToken[];
  apps?: SimulatedApp[];
  groups?: SimulatedGroup[];
  /** Enterprise → its organizations. An enterprise not named here owns every organization. */
  enterprises?: Record<string, string[]>;
  /**
   * Duration of a job's lease (ms). Without renewal the job is then lost and its runner is
   * released. @default 600000, as on GitHub
   */
  leaseMs?: number;
  /** Interval between renewals that runners are given (ms). @default a tenth of the lease */
  renewEveryMs?: number;
  /**
   * Time within which a runner must start a job; otherwise the job returns to the queue (ms).
   * @default 60000
   */
  acceptMs?: number;
  /** After this long without a poll a runner is shown as offline. @default 30000 */
  offlineAfterMs?: number;
  /** Length of a runner's long poll. @default 50000 */
  pollMs?: number;
  /**
   * Time for which a single-use registration remains busy after its job (ms). On GitHub: 0 to tens
   * of seconds. @default 0
   */
  ephemeralRemovalMs?: number;
  /** Offline registrations are removed after this long. @default 14 days, ephemeral ones 1 day */
  offlineRemovalMs?: { static: number; ephemeral: number };
  /** Life of registration and remove tokens. @default 3600000 */
  registrationTokenMs?: number;
  /** Life of an App's installation tokens. @default 3600000 */
  installationTokenMs?: number;
  /** Primary limit of each credential. @default {limit: 5000, windowMs: 3600000} */
  rateLimit?: { limit?: number; windowMs?: number };
  /**
   * Whether GitHub's secondary limits apply: 100 concurrent requests, 900 points per minute and
   * endpoint, 1500 registrations in 5 minutes. @default false
   */
  secondaryLimits?: boolean;
  /** Which of GitHub's two texts DELETE of a busy runner answers. @default "current" */
  busyText?: 'current' | 'older';
  /** Runner versions that are refused (`*` for all). */
  deprecatedVersions?: string[];
  /** Until when GitHub accepts a runner version; later it is refused. */
  versionDeadlines?: Record<string, VersionDeadline>;
  /** How long a poll for a scale set's messages is held. @default 50000 */
  scaleSetPollMs?: number;
  /** After this long without a poll, GitHub ends a scale set's session. @default 60000 */
  scaleSetSessionMs?: number;
  /** Life of the Actions service's own tokens. @default 3600000 */
  tenantTokenMs?: number;
  /**
   * Labels of a scale set. `name`: its name only, as GitHub Enterprise Server before 3.21, which
   * ignores others. @default "many"
   */
  scaleSetLabels?: 'many' | 'name';
  /**
   * Time after which an acquired job that no runner has started is available again, at most three
   * times (ms). @default 300000
   */
  scaleSetAssignMs?: number;
  /** For faults with a probability and for the order of shuffled webhooks. @default 1 */
  seed?: number;
  /** File in which registrations and jobs survive a restart. */
  stateFile?: string;
  /** @default 10000, as GitHub's */
  webhookTimeoutMs?: number;
}

const DAY_MS = 86_400_000;

/** Options with every default filled in. */
export interface Settings extends Required<
  Omit<SimulatorOptions, 'publicUrl' | 'webhook' | 'stateFile' | 'rateLimit'>
> {
  publicUrl?: string;
  webhook?: WebhookTarget;
  stateFile?: string;
  rateLimit: { limit: number; windowMs: number };
}

const DEFAULT_TOKEN = 'ghp_simulator';

export function withDefaults(options: SimulatorOptions): Settings {
  const leaseMs = options.leaseMs ?? 600_000;
  return {
    port: 0,
    host: '127.0.0.1',
    tokens: [{ token: DEFAULT_TOKEN, name: 'default' }],
    apps: [],
    groups: [],
    enterprises: {},
    renewEveryMs: Math.max(20, Math.floor(leaseMs / 10)),
    acceptMs: 60_000,
    offlineAfterMs: 30_000,
    pollMs: 50_000,
    ephemeralRemovalMs: 0,
    offlineRemovalMs: { static: 14 * DAY_MS, ephemeral: DAY_MS },
    registrationTokenMs: 3_600_000,
    installationTokenMs: 3_600_000,
    secondaryLimits: false,
    busyText: 'current',
    deprecatedVersions: [],
    versionDeadlines: {},
    scaleSetPollMs: 50_000,
    scaleSetSessionMs: 60_000,
    tenantTokenMs: 3_600_000,
    scaleSetLabels: 'many',
    scaleSetAssignMs: 300_000,
    seed: 1,
    webhookTimeoutMs: 10_000,
    ...options,
    leaseMs,
    rateLimit: {
      limit: options.rateLimit?.limit ?? 5000,
      windowMs: options.rateLimit?.windowMs ?? 3_600_000,
    },
  };
}
