/**
 * Reads the configuration from the environment, with all errors at once. Each names the setting,
 * the fault and the fix.
 */
import { RUNNER_KINDS } from '../../core/domain/runnerKinds/runnerKinds.ts';
import type { Credentials } from '../../activities/ciServers/credentials.ts';
import { defaultStateDir } from '../../activities/compute/process/podDirectory.ts';
import { ConfigError, type ConfigProblem } from './configError.ts';
import { readCredentials } from './credentialSettings.ts';
import { settings, type Settings } from './settings.ts';
import { artifactStoreLocation, jobClaimConfig } from './artifactStore.ts';
import { workerTemplateErrors } from '../../core/input/podTemplate.ts';
import { withoutNulls } from '../../core/domain/withoutNulls.ts';
import { podTemplateSchema } from '../../core/input/runnerSchema.ts';
import type { PodTemplate } from '../../core/domain/pod.ts';
import { type TimeoutPolicy, timeoutPolicySchema } from '../../core/input/timeoutPolicy.ts';
import type { ArtifactStoreLocation } from '../../activities/compute/kubernetes/storeAccess.ts';
import type { JobClaimConfig } from '../../activities/compute/kubernetes/volumeClaims.ts';
import {
  DEFAULT_POD_POLICY,
  type PodPolicy,
  podPolicySchema,
} from '../../activities/compute/kubernetes/podPolicy/podPolicy.ts';
import { readDocument } from './settingDocument.ts';
import { loadTemporalConfig, type TemporalConfig } from './temporalConfig.ts';
import { tracingEnabled } from './traces.ts';
import { unknownSettings } from './unknownSettings.ts';
import { type WebhookEndpoint, webhookSecrets, type WebhookSecrets } from './webhookSecrets.ts';
import { settingConflicts } from './settingConflicts.ts';

type Env = Readonly<Record<string, string | undefined>>;

/** Configuration of the worker. Durations in ms. */
export interface HoldfastConfig {
  readonly temporal: TemporalConfig;
  /**
   * Reads the settings of Temporal again, because their files may have changed.
   * @throws Error with a one-line message
   */
  readonly readTemporal: () => TemporalConfig;
  /** Path of the key file. `undefined`: payloads are not encrypted. */
  readonly codecKeyFile: string | undefined;
  /**
   * Patterns of workflow IDs that may receive payloads encrypted without a workflow ID.
   * `undefined`: payloads in clear text are accepted.
   */
  readonly encryptionRequired: { readonly unboundWorkflowIds: readonly string[] } | undefined;
  readonly taskQueue: string;
  readonly installation: string;
  readonly compute:
    | {
        readonly kind: 'kubernetes';
        readonly namespace: string | undefined;
        /** Namespaces that runners may name, in addition to that of the worker. */
        readonly otherNamespaces: readonly string[];
        /** Namespaces in which the hooks of runners create pods for their jobs. */
        readonly jobPodNamespaces: readonly string[];
        /** Namespace of the RunnerSet resources. `undefined`: there is no controller for them. */
        readonly runnerSetNamespace: string | undefined;
        readonly kubeconfig: string | undefined;
        readonly context: string | undefined;
        readonly image: string;
        readonly command: readonly string[] | undefined;
        /**
         * User ID for the containers. `undefined` to keep the image's own user if that is not root.
         */
        readonly user: number | undefined;
        readonly supervisorImage: string | undefined;
        /**
         * Location of the artifact store. `undefined`: artifacts and logs of steps are not stored.
         */
        readonly store: ArtifactStoreLocation | undefined;
        /** Claim of each job without a store. `undefined`: jobs have none. */
        readonly jobClaim: JobClaimConfig | undefined;
        readonly policy: PodPolicy;
        /** Default pod template, which the template of each runner overrides. */
        readonly template: PodTemplate | undefined;
      }
    | {
        readonly kind: 'process';
        readonly stateDir: string;
        readonly command: readonly string[] | undefined;
        readonly anyCommand: boolean;
      };
  readonly credentials: Credentials;
  readonly timeouts: TimeoutPolicy;
  /**
   * Destination for the last log lines of a runner that did not succeed: the worker's own log, or a
   * folder. `undefined` to keep none.
   */
  readonly podLogs:
    { readonly to: 'log' | { readonly folder: string }; readonly maxBytes: number } | undefined;
  readonly http: { readonly host: string; readonly port: number };
  /** Address and secrets of the webhook. `undefined`: no webhook. */
  readonly webhook: WebhookEndpoint | undefined;
  /** Interval between two rounds of redelivery (ms). 0: no redelivery. */
  readonly redeliveryIntervalMs: number;
  /** Interval between two sweeps (ms). 0: no sweeps. */
  readonly sweepIntervalMs: number;
  readonly shutdownGraceMs: number;
  readonly shutdownForceMs: number;
  readonly connectTimeoutMs: number;
  readonly maxCachedWorkflows: number;
  readonly maxWorkflowTasks: number;
  readonly maxActivities: number;
  readonly workflowStacks: boolean;
  readonly log: { readonly level: string; readonly format: 'json' | 'text' };
  /** Whether spans are exported, according to the OTEL_* variables. */
  readonly traces: boolean;
  readonly versioning: { readonly deploymentName: string; readonly buildId: string } | undefined;
  /** Settings that may be a mistake, but do not prevent the start. */
  readonly warnings: readonly ConfigProblem[];
}

/** Settings that have a value. An empty value counts as not set. */
export function nonEmptySettings(env: Env): Record<string, string> {
  const set: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && value.trim() !== '') set[name] = value;
  }
  return set;
}

/**
 * Reads the configuration.
 * @throws ConfigError with every problem found
 */
export function loadConfig(env: Env = process.env): HoldfastConfig {
  const set = nonEmptySettings(env);
  const problems: ConfigProblem[] = [];
  const parsed = settings.safeParse(set);
  for (const issue of parsed.error?.issues ?? [])
    problems.push({ setting: issue.path.join('.'), message: issue.message });
  const policy = readPodPolicy(set, problems);
  const template = readPodTemplate(set, problems);
  problems.push(...settingConflicts(set, parsed.data));
  const temporal = readSetting('TEMPORAL_*', problems, () => loadTemporalConfig(set));
  const secrets = readSetting('HOLDFAST_WEBHOOK_SECRET_FILE', problems, () => webhookSecrets(set));
  const warnings: ConfigProblem[] = [];
  const credentials = readCredentials(set, parsed.data?.HOLDFAST_TASK_QUEUE, problems, warnings);
  const timeouts =
    readDocument(
      set,
      { inline: 'HOLDFAST_TIMEOUTS', file: 'HOLDFAST_TIMEOUTS_FILE' },
      timeoutPolicySchema,
      problems,
    ) ?? {};
  problems.push(...unknownSettings(set, secretVariables(credentials)));
  const traces = tracingEnabled(set, warnings);
  if (problems.length > 0 || !parsed.success || temporal === undefined)
    throw new ConfigError([...problems, ...warnings]);
  return toConfig(parsed.data, {
    temporal,
    secrets,
    credentials,
    timeouts,
    policy,
    template,
    traces,
    warnings,
    set,
  });
}

/** Names of the variables that hold secrets of credentials. */
function secretVariables(credentials: Credentials): string[] {
  return Object.values(credentials).flatMap((credential) => {
    const name = credential.type === 'pat' ? credential.tokenEnv : credential.privateKeyEnv;
    return name === undefined ? [] : [name];
  });
}

/**
 * Reads a setting.
 * @param problems - receives an entry if `read` throws
 * @returns `undefined` then
 */
export function readSetting<T>(
  setting: string,
  problems: ConfigProblem[],
  read: () => T,
): T | undefined {
  try {
    return read();
  } catch (error) {
    problems.push({ setting, message: oneLine(error) });
    return undefined;
  }
}

interface Read {
  readonly temporal: TemporalConfig;
  readonly secrets: WebhookSecrets | undefined;
  readonly credentials: Credentials;
  readonly timeouts: TimeoutPolicy;
  readonly policy: PodPolicy;
  readonly template: PodTemplate | undefined;
  readonly traces: boolean;
  readonly warnings: readonly ConfigProblem[];
  readonly set: Env;
}

function computeConfig(s: Settings, { set, policy, template }: Read): HoldfastConfig['compute'] {
  if (s.HOLDFAST_COMPUTE !== 'kubernetes')
    return {
      kind: 'process',
      stateDir: s.HOLDFAST_STATE_DIR ?? defaultStateDir(set),
      command: s.HOLDFAST_RUNNER_COMMAND,
      anyCommand: s.HOLDFAST_ALLOW_ANY_COMMAND === 'true',
    };
  const known = Object.values(RUNNER_KINDS).find(
    ({ image }) => image?.name === s.HOLDFAST_RUNNER_IMAGE,
  )?.image;
  return {
    kind: 'kubernetes',
    namespace: s.HOLDFAST_KUBERNETES_NAMESPACE,
    otherNamespaces: s.HOLDFAST_NAMESPACES ?? [],
    jobPodNamespaces: s.HOLDFAST_JOB_POD_NAMESPACES ?? [],
    runnerSetNamespace: s.HOLDFAST_RUNNER_SET_RESOURCE_NAMESPACE,
    kubeconfig: s.HOLDFAST_KUBECONFIG,
    context: s.HOLDFAST_KUBE_CONTEXT,
    image: s.HOLDFAST_RUNNER_IMAGE,
    command: s.HOLDFAST_RUNNER_COMMAND ?? known?.command,
    user: known?.user,
    supervisorImage: s.HOLDFAST_SUPERVISOR_IMAGE,
    store: artifactStoreLocation(s),
    jobClaim: jobClaimConfig(s),
    policy,
    template,
  };
}

function toConfig(s: Settings, read: Read): HoldfastConfig {
  return {
    temporal: read.temporal,
    readTemporal: () => loadTemporalConfig(read.set),
    codecKeyFile: s.HOLDFAST_CODEC_KEY_FILE,
    encryptionRequired:
      s.HOLDFAST_CODEC_REQUIRED === 'true'
        ? { unboundWorkflowIds: s.HOLDFAST_CODEC_UNBOUND_WORKFLOWS ?? [] }
        : undefined,
    taskQueue: s.HOLDFAST_TASK_QUEUE,
    installation: s.HOLDFAST_INSTALLATION,
    compute: computeConfig(s, read),
    credentials: read.credentials,
    timeouts: read.timeouts,
    podLogs:
      s.HOLDFAST_POD_LOGS === 'off'
        ? undefined
        : {
            to: s.HOLDFAST_POD_LOGS === 'log' ? 'log' : { folder: s.HOLDFAST_POD_LOGS },
            maxBytes: s.HOLDFAST_POD_LOG_MAX_BYTES,
          },
    http: s.HOLDFAST_HTTP_ADDRESS,
    webhook: read.secrets && { ...s.HOLDFAST_WEBHOOK_ADDRESS, secrets: read.secrets },
    // Without a secret this worker receives no deliveries. An installation that only requests
    // redeliveries sets this explicitly.
    redeliveryIntervalMs:
      read.secrets === undefined && read.set['HOLDFAST_REDELIVERY_INTERVAL'] === undefined
        ? 0
        : s.HOLDFAST_REDELIVERY_INTERVAL,
    sweepIntervalMs: s.HOLDFAST_SWEEP_INTERVAL,
    shutdownGraceMs: s.HOLDFAST_SHUTDOWN_GRACE_TIME,
    shutdownForceMs: s.HOLDFAST_SHUTDOWN_FORCE_TIME,
    connectTimeoutMs: s.HOLDFAST_CONNECT_TIMEOUT,
    maxCachedWorkflows: s.HOLDFAST_MAX_CACHED_WORKFLOWS,
    maxWorkflowTasks: s.HOLDFAST_MAX_CONCURRENT_WORKFLOW_TASKS,
    maxActivities: s.HOLDFAST_MAX_CONCURRENT_ACTIVITIES,
    workflowStacks: s.HOLDFAST_WORKFLOW_STACK_TRACES === 'true',
    log: { level: s.HOLDFAST_LOG_LEVEL, format: s.HOLDFAST_LOG_FORMAT },
    traces: read.traces,
    versioning:
      s.TEMPORAL_DEPLOYMENT_NAME !== undefined && s.TEMPORAL_WORKER_BUILD_ID !== undefined
        ? { deploymentName: s.TEMPORAL_DEPLOYMENT_NAME, buildId: s.TEMPORAL_WORKER_BUILD_ID }
        : undefined,
    warnings: read.warnings,
  };
}

/**
 * Reads the pod policy.
 * @param problems - receives an entry for each fault
 */
export function readPodPolicy(set: Env, problems: ConfigProblem[]): PodPolicy {
  return (
    readDocument(set, { file: 'HOLDFAST_POD_POLICY_FILE' }, podPolicySchema, problems) ??
    DEFAULT_POD_POLICY
  );
}

/**
 * Reads the default pod template.
 * @param problems - receives an entry for each fault
 */
export function readPodTemplate(set: Env, problems: ConfigProblem[]): PodTemplate | undefined {
  const setting = 'HOLDFAST_POD_TEMPLATE_FILE';
  const template = readDocument(set, { file: setting }, podTemplateSchema, problems);
  for (const { field, message } of workerTemplateErrors(template ?? {}))
    problems.push({ setting, message: `${field} ${message}` });
  return template && withoutNulls(template);
}

/** Returns the message of an error on one line. */
export function oneLine(error: unknown): string {
  const message = (error as { message?: unknown } | undefined)?.message;
  return (typeof message === 'string' ? message : String(error)).replaceAll(/\s*\n\s*/g, ' ');
}
