/**
 * All settings of the worker as one zod schema, with their meaning and defaults. Every name is an
 * environment variable. docs/configuration.md is checked against this file. An empty value counts
 * as unset.
 */
import { GITHUB_RUNNER } from '../../core/domain/runnerKinds/gitHub.ts';
import { z } from 'zod';
import {
  bucketName,
  command,
  dnsLabel,
  duration,
  httpUrl,
  intervalOrOff,
  listenAddress,
  enumValue,
  secretName,
  storageClassName,
  text,
  integer,
  namespaceList,
  patternList,
  volumeSize,
} from './settingTypes.ts';

/**
 * Schema of all settings, by environment variable. Descriptions and defaults are part of the
 * documentation.
 */
export const settings = z.object({
  // ------------------------------------------------------------------------------------------------ what runs where
  HOLDFAST_TASK_QUEUE: text
    .prefault('holdfast')
    .describe(
      'Temporal task queue. Calls to the CI server use `<task queue>-ci-<credential>`, to the cluster `<task queue>-cluster`, sessions of scale sets `<task queue>-listen`.',
    ),
  HOLDFAST_COMPUTE: enumValue('kubernetes', 'process')
    .prefault('kubernetes')
    .describe('`kubernetes` (pods), or `process` (on this machine, for demonstrations).'),
  HOLDFAST_INSTALLATION: dnsLabel
    .prefault('holdfast')
    .describe(
      "Label of this installation's pods and Secrets, unique among those that share a Kubernetes namespace.",
    ),

  // ------------------------------------------------------------------------------------------------ Temporal
  HOLDFAST_CODEC_KEY_FILE: text
    .optional()
    .describe(
      'Keys of the [payload codec](security.md#payload-codec), read again when the file changes. Without it payloads are plaintext.',
    ),
  HOLDFAST_CODEC_REQUIRED: enumValue('true', 'false')
    .prefault('false')
    .describe(
      '`true`: workers reject payloads that are [not encrypted for their workflow](security.md#require-encryption).',
    ),
  HOLDFAST_CODEC_UNBOUND_WORKFLOWS: patternList
    .optional()
    .describe(
      'Workflow ids (commas, `*` as a wildcard) to which the `temporal` command may still send payloads.',
    ),
  HOLDFAST_TEMPORAL_API_KEY_FILE: text
    .optional()
    .describe('File with the API key, read again when it changes.'),

  HOLDFAST_TEMPORAL_UI_URL: httpUrl
    .optional()
    .describe("Address of Temporal's UI, for links of the command."),

  // -------------------------------------------------------------------------------------------- compute: kubernetes
  HOLDFAST_KUBERNETES_NAMESPACE: dnsLabel
    .optional()
    .describe(
      "Namespace of runners that name none. Default: the context's (in a cluster: the worker's own), else `default`.",
    ),
  HOLDFAST_RUNNER_SET_RESOURCE_NAMESPACE: dnsLabel
    .optional()
    .describe('Namespace of [RunnerSet resources](runner-sets.md#as-kubernetes-resources).'),
  HOLDFAST_NAMESPACES: namespaceList
    .optional()
    .describe(
      "Other namespaces that runners may name (commas), each with the worker's Role and RoleBinding.",
    ),
  HOLDFAST_JOB_POD_NAMESPACES: namespaceList
    .optional()
    .describe(
      'Further namespaces (commas), in which container hooks create [pods for jobs](security.md#jobs-in-pods-of-their-own).',
    ),
  HOLDFAST_POD_POLICY_FILE: text
    .optional()
    .describe(
      "File with the [pod policy](security.md#pod-policy). Default: only the worker's own images, and no service account, Secret, claim or part of the node.",
    ),
  HOLDFAST_POD_TEMPLATE_FILE: text
    .optional()
    .describe("Pod template (`metadata` and `spec`, YAML or JSON) under each runner's own."),
  HOLDFAST_KUBECONFIG: text
    .optional()
    .describe(
      "Kubeconfig file. Default: `KUBECONFIG`, else the pod's service account, else `~/.kube/config`.",
    ),
  HOLDFAST_KUBE_CONTEXT: text
    .optional()
    .describe('Context of the kubeconfig. Default: its current one.'),
  HOLDFAST_RUNNER_IMAGE: text
    .prefault(GITHUB_RUNNER.image.name)
    .describe('Image of runners that name none.'),
  HOLDFAST_SUPERVISOR_IMAGE: text
    .optional()
    .describe(
      "Image with the [supervisor](supervisor.md) for runners' pods, such as the worker's own. Default: none.",
    ),
  HOLDFAST_STORE_VOLUME_CLAIM: dnsLabel
    .optional()
    .describe(
      "Claim in the runners' namespace (`ReadWriteMany` on several nodes) for [files of jobs](jobs.md#what-steps-leave). Needs `HOLDFAST_SUPERVISOR_IMAGE`.",
    ),
  HOLDFAST_STORE_BUCKET: bucketName
    .optional()
    .describe('S3 bucket for the same, instead of a claim.'),
  HOLDFAST_STORE_PREFIX: text
    .optional()
    .describe('Prefix of all objects in the bucket, such as `ci`.'),
  HOLDFAST_STORE_ENDPOINT: httpUrl
    .optional()
    .describe("Address of the S3 server, reachable from runners' pods. Default: Amazon's."),
  HOLDFAST_STORE_REGION: text.optional().describe('Region of the bucket. Default: `us-east-1`.'),
  HOLDFAST_STORE_FORCE_PATH_STYLE: enumValue('true', 'false')
    .optional()
    .describe(
      "`true`: the bucket is in the address's path. Default: `true` with `HOLDFAST_STORE_ENDPOINT`.",
    ),
  HOLDFAST_STORE_SECRET: secretName
    .optional()
    .describe(
      "Secret in the runners' namespace with `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`. Default: the pod's cloud role, which [its step has too](security.md#the-store).",
    ),

  HOLDFAST_JOB_CLAIM_SIZE: volumeSize
    .optional()
    .describe(
      'Without a store: size of [a claim of each job](jobs.md#a-claim-of-each-job), such as `1Gi`.',
    ),
  HOLDFAST_JOB_CLAIM_STORAGE_CLASS: storageClassName
    .optional()
    .describe("Storage class of these claims. Default: the cluster's."),

  // ------------------------------------------------------------------------------------------- timeouts and logs
  HOLDFAST_TIMEOUTS: text
    .optional()
    .describe(
      'Timeouts by scope, as a JSON object `{"default": {…}, "scopes": {"acme": {…}, "acme/web": {…}}}`; the most specific one applies, and a runner\'s own overrides it. Fields: `podUnscheduled`, `podPending`, `registration`, `jobTimeout`, `jobTimeoutCap` (its maximum, 24h), `signalTimeout`, `cleanupTimeout`, and `jobs` (`timeout`, `gracePeriod`, `maxAge`, and `timeoutCap`, by default 24h). `jobs` next to `default` has these by name of the [job](jobs.md).',
    ),
  HOLDFAST_TIMEOUTS_FILE: text.optional().describe('The same, from a YAML or JSON file.'),
  HOLDFAST_POD_LOGS: text
    .prefault('off')
    .describe(
      "Destination of the last log lines of unsuccessful runners: `log` (the worker's own), `off`, or an absolute directory. Not masked.",
    ),
  HOLDFAST_POD_LOG_MAX_BYTES: integer(1, 10_000_000)
    .prefault('65536')
    .describe('Maximum number of bytes of these lines.'),

  // ----------------------------------------------------------------------------------------------- compute: process
  HOLDFAST_RUNNER_COMMAND: command
    .optional()
    .describe(
      "Command of runners that name none: words (no quoting), or a JSON array. Required with `HOLDFAST_COMPUTE=process`. Default: the image's own; for the default image `/home/runner/run.sh`.",
    ),
  HOLDFAST_ALLOW_ANY_COMMAND: enumValue('true', 'false')
    .prefault('false')
    .describe("`true`: users who may start workflows can run any command as the worker's user."),
  HOLDFAST_STATE_DIR: text
    .optional()
    .describe(
      'Directory of the process compute. Default: `processes` in `$XDG_STATE_HOME/holdfast` or `~/.local/state/holdfast`.',
    ),

  // ------------------------------------------------------------------------------------------- CI server credentials
  HOLDFAST_GITHUB_TOKEN: text
    .optional()
    .describe('GitHub token of one credential `default`. Better: `HOLDFAST_GITHUB_TOKEN_FILE`.'),
  HOLDFAST_GITHUB_TOKEN_FILE: text
    .optional()
    .describe('The same, from a file, read again when it changes.'),
  HOLDFAST_GITHUB_URL: httpUrl
    .optional()
    .describe(
      'Its API; GitHub Enterprise Server: `https://HOST/api/v3`. Default: `https://api.github.com`.',
    ),
  HOLDFAST_GITHUB_RERUNS: enumValue('true', 'false')
    .prefault('false')
    .describe(
      '`true`: [lost jobs may run again](lifecycle.md#jobs-that-run-again); the token needs _Actions_, read and write, and _Checks_, read-only.',
    ),
  HOLDFAST_CREDENTIALS: text
    .optional()
    .describe('Credentials by name, as a JSON object without secrets ([fields](#credentials)).'),
  HOLDFAST_CREDENTIALS_FILE: text.optional().describe('The same, from a YAML or JSON file.'),

  // ------------------------------------------------------------------------------------- health, metrics and webhooks
  HOLDFAST_HTTP_ADDRESS: listenAddress
    .prefault('0.0.0.0:8080')
    .describe('Address of `/livez`, `/readyz` and `/metrics`.'),
  HOLDFAST_WEBHOOK_ADDRESS: listenAddress
    .prefault('0.0.0.0:8081')
    .describe('Address of `/webhooks/<server>`, which the CI server must reach.'),
  HOLDFAST_WEBHOOK_SECRET: text
    .optional()
    .describe(
      'Secret of the webhook. Better: `HOLDFAST_WEBHOOK_SECRET_FILE`. Without either: no deliveries.',
    ),
  HOLDFAST_WEBHOOK_SECRET_FILE: text
    .optional()
    .describe('The same, from a file; during a rotation two lines, the new and the old secret.'),
  HOLDFAST_REDELIVERY_INTERVAL: duration
    .prefault('5m')
    .describe(
      "Interval between checks for [failed deliveries](#events-that-were-missed). Without the webhook's secret only if set. `0s`: never.",
    ),

  // ------------------------------------------------------------------------------------------------------- the sweep
  HOLDFAST_SWEEP_INTERVAL: intervalOrOff
    .prefault('5m')
    .describe('Interval of the [sweep](sweep.md). `off`, or 0: no Schedule.'),

  // -------------------------------------------------------------------------------------------------------- shutdown
  HOLDFAST_SHUTDOWN_GRACE_TIME: duration
    .prefault('30s')
    .describe('Time after SIGTERM for running activities.'),
  HOLDFAST_SHUTDOWN_FORCE_TIME: duration
    .prefault('50s')
    .describe(
      "Time after SIGTERM at which the worker ends, below the pod's `terminationGracePeriodSeconds` (60).",
    ),
  HOLDFAST_CONNECT_TIMEOUT: duration
    .prefault('60s')
    .describe('Maximum wait for Temporal at start.'),

  // ------------------------------------------------------------------------------------------------------ throughput
  HOLDFAST_MAX_CACHED_WORKFLOWS: integer(0, 100_000)
    .prefault('2000')
    .describe('Workflows kept in memory: at least the runners that may wake together.'),
  HOLDFAST_MAX_CONCURRENT_WORKFLOW_TASKS: integer(2, 10_000)
    .prefault('100')
    .describe('Maximum of concurrent workflow tasks.'),
  HOLDFAST_MAX_CONCURRENT_ACTIVITIES: integer(1, 10_000)
    .prefault('200')
    .describe("Maximum of concurrent activities on the main task queue and the cluster's."),
  HOLDFAST_WORKFLOW_STACK_TRACES: enumValue('true', 'false')
    .prefault('false')
    .describe('`true`: stack traces of workflow code, for a third more CPU and memory.'),

  // --------------------------------------------------------------------------------------------------------- logging
  HOLDFAST_LOG_LEVEL: enumValue('trace', 'debug', 'info', 'warn', 'error')
    .prefault('info')
    .describe('Lowest level that is logged.'),
  HOLDFAST_LOG_FORMAT: enumValue('json', 'text')
    .prefault('json')
    .describe('`json`: one object a line; `text`: for people.'),

  // ------------------------------------------------------------------------------------------------------- versioning
  TEMPORAL_DEPLOYMENT_NAME: text
    .optional()
    .describe(
      'With `TEMPORAL_WORKER_BUILD_ID`: [worker versioning](operations.md#worker-versioning).',
    ),
  TEMPORAL_WORKER_BUILD_ID: text.optional().describe("Build id of this worker's code."),
});

/** Settings after validation, before they become a {@link HoldfastConfig}. */
export type Settings = z.output<typeof settings>;
/** Name of a setting and of its environment variable. */
export type SettingName = keyof Settings;
