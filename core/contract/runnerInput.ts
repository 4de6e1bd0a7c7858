/**
 * Input of the `runner` workflow. Each table of durations defines their names, defaults and
 * meaning. The types here, the validation and the values in milliseconds (core/input/) are derived
 * from the tables.
 */
import type { CiServerKind } from '../domain/ciServerKind.ts';
import type { Durations } from '../domain/duration.ts';
import type { RerunPolicy } from './rerun.ts';

/** Deadlines of a runner, with their defaults. */
export const RUNNER_TIMEOUTS = {
  /** Time limit for registration, Secret and pod together, including retries. @default "1h" */
  provisioning: '1h',
  /** Time limit from the pod's creation until it is scheduled to a node. @default "5m" */
  podUnscheduled: '5m',
  /** Time limit from the pod's creation until the runner container starts. @default "10m" */
  podPending: '10m',
  /** Time limit from the container's start until the runner is online. @default "10m" */
  registration: '10m',
  /** Time limit in the phase Idle; the runner is then drained. @default off */
  idle: undefined,
  /**
   * Time limit of a job. The default is also the cap, unless the worker's settings define another
   * one.
   * @default "24h"
   */
  jobTimeout: '24h',
  /**
   * Time limit of an ephemeral runner from the job event that reports the end of its job until it
   * exits. It is then stopped.
   * @default "10m"
   */
  exit: '10m',
  /**
   * Time limit from the runner's end for the removal of its registration. It is then handed off to
   * a `deregistration` workflow.
   * @default "1h"
   */
  unregistration: '1h',
  /**
   * Time limit from the start of a workflow with `onEviction: resume`, including its waits. The
   * command is then stopped and not resumed again.
   * @default "7d"
   */
  maxAge: '7d',
} as const;

/** Parts of the pod's termination grace period, with their defaults. */
export const STOP_TIMEOUTS = {
  /**
   * Time for which the job may continue after SIGTERM. Required with `onTerm: drain`.
   * @default none
   */
  drainTimeout: undefined,
  /** Time from the stop signal to SIGKILL. @default "10s" */
  signalTimeout: '10s',
  /** Additional time for the records and the cleanup command. @default "5s" */
  cleanupTimeout: '5s',
  /**
   * Grace period of a plain command, instead of `signalTimeout` and `cleanupTimeout`, which are
   * derived from it (docs/supervisor.md).
   * @default none
   */
  gracePeriod: undefined,
} as const;

/** Pace of a runner's re-checks. The defaults are right for production. */
export const RUNNER_INTERVALS = {
  /** Interval between live re-reads of the pod while waiting for it. @default "10m" */
  resync: '10m',
  /** Interval between two requests to remove a busy static runner. @default "1m" */
  busyRetry: '1m',
  /** Interval between safety re-checks of a busy ephemeral runner. @default "10m" */
  busyCheck: '10m',
  /** Interval between two checks for a runner that may be about to register. @default "10s" */
  absentCheck: '10s',
  /** Interval between two attempts with a rejected credential. @default "5m" */
  credentialsRetry: '5m',
  /**
   * First interval between two checks for a runner that is coming online. It doubles up to 30 s.
   * @default "2s"
   */
  onlineCheck: '2s',
  /**
   * Time for a runner that was never seen online to end after its registration was removed.
   * @default "2m"
   */
  removalGrace: '2m',
  /**
   * Time for which a runner whose registration is gone must keep reporting that it is idle before
   * its pod is deleted.
   * @default "3s"
   */
  idleConfirmation: '3s',
  /**
   * Time that a stop waits for the CI server's first answer before it stops the pod anyway.
   * @default "30s"
   */
  stopResponseTimeout: '30s',
  /**
   * Maximum age of the CI server's lists: an entry that is missing from a list may have been added
   * since.
   * @default "1m"
   */
  listMaxAge: '1m',
  // A disconnected worker may create objects for up to a minute. Its request may take 30 s, and an
  // API server may execute an abandoned request for another minute.
  /**
   * Time after an interrupted provisioning in which its objects may still appear.
   * @default "2m30s"
   */
  lateCreationWindow: '2m30s',
} as const;

/** Deadlines of a runner as duration strings; see {@link RUNNER_TIMEOUTS}. */
export type RunnerTimeouts = Durations<typeof RUNNER_TIMEOUTS>;
/** Intervals of a runner as duration strings; see {@link RUNNER_INTERVALS}. */
export type RunnerIntervals = Durations<typeof RUNNER_INTERVALS>;

/**
 * Input of the `runner` workflow: one JSON object. Durations are strings such as `30s`, `10m`,
 * `1h30m`.
 */
export interface RunnerInput {
  /**
   * Prefix of the runner's name at the CI server; a hash of this execution is appended. Job events
   * reach the runner only if its workflow id is `runner-<name>`.
   * @default the workflow id without `runner-`
   */
  name?: string;
  /**
   * Kind of CI server; must be that of the credential. `none`: a plain command (`command`) that no
   * CI server knows.
   * @default "github"
   */
  ciServer?: CiServerKind | 'none';
  /**
   * Scope of the runner. Exactly one of `organization`, `repository` and `enterprise` must be set;
   * none of them with `ciServer: none`.
   */
  organization?: string;
  /** `owner/repo`. */
  repository?: string;
  enterprise?: string;
  /** Credential named in the worker's settings. @default "default" */
  credential?: string;
  /**
   * Name of the runner group. Repositories have no groups.
   * @default the default group of the CI server
   */
  runnerGroup?: string;
  /** ID of the runner group, instead of its name. */
  runnerGroupId?: string;
  /**
   * Source of the jobs. `webhook`: events and checks report each job. `scaleSet`: GitHub assigns
   * jobs to a scale set and reports their number, so no webhook is needed. Only for ephemeral
   * runners.
   * @default "webhook"
   */
  demand?: 'webhook' | 'scaleSet';
  /** Scale set at GitHub. Only with `demand: scaleSet`. */
  scaleSet?: {
    /** Name of the scale set, unique in its runner group. @default the name of the set */
    name?: string;
    /**
     * Whether to take over a scale set that another system created, such as one of
     * actions-runner-controller. Two systems cannot use one scale set at the same time.
     * @default false
     */
    adopt?: boolean;
  };
  /**
   * Labels of the runner, 1 to 100.
   * @default those of the CI server's runners; `["self-hosted"]` for GitHub
   */
  labels?: string[];
  /**
   * Whether the runner takes one job only. `false`: a static runner, which takes many.
   * @default true
   */
  ephemeral?: boolean;
  /**
   * Whether a static runner never updates itself (`config.sh --disableupdate`), because its image
   * is fixed. GitHub accepts its version for 30 days after the next release. Set it to `false` for
   * a GitHub Enterprise Server that does not know the option. It does not apply to JIT configs:
   * https://docs.github.com/en/actions/reference/runners/self-hosted-runners#runner-software-updates-on-self-hosted-runners
   * @default true
   */
  disableUpdate?: boolean;
  /** Name of the set this runner belongs to. */
  set?: string;
  /**
   * Id of the `job` workflow that this runner is a step of. The job is notified about the runner's
   * pods. Requires `ciServer: none`.
   */
  job?: string;
  /** Storage of the step's files, if the worker has a store. Only with `job`. */
  storage?: StepStorage;
  /**
   * Whether the runner executes code of an outside contributor. Its pod gets no Secret, service
   * account, claim or host resource, whatever the worker's pod policy allows.
   * @default false
   */
  untrusted?: boolean;
  /** Kubernetes namespace of the pod. @default the worker's namespace */
  namespace?: string;
  /** Image of the runner container. @default the worker's image */
  image?: string;
  command?: string[];
  args?: string[];
  env?: Record<string, string>;
  /** PodTemplateSpec fragment. Its container `runner` is merged into the runner container. */
  pod?: {
    metadata?: { labels?: Record<string, string>; annotations?: Record<string, string> };
    spec?: Record<string, unknown>;
  };
  /**
   * How the supervisor becomes the first process of the container. `inject`: it is copied in; the
   * command must be known. `image`: the image's entry point starts it. `none`: the command runs
   * without it.
   * @default the worker's setting
   */
  supervisor?: SupervisorMode;
  /** Persistent volumes of the runner container. */
  volumeClaims?: VolumeClaim[];
  /** HTTP proxy for the runner and its jobs. @default the image's own configuration */
  proxy?: RunnerProxy;
  /**
   * Certificate authorities that the runner and its jobs trust, for example for a GitHub Enterprise
   * Server with a private certificate.
   * @default those of the image
   */
  ca?: CertificateAuthority;
  timeouts?: RunnerTimeouts;
  /**
   * Timeouts and signals of a stop. The pod's `terminationGracePeriodSeconds` is derived from them.
   */
  stop?: StopInput;
  /**
   * Effect of SIGTERM inside the pod. `checkpoint` requires `onEviction: resume`.
   * @default "stop"
   */
  onTerm?: OnTerm;
  /**
   * Reaction to the loss of the pod of a busy runner. `resume` requires `ciServer: none`.
   * @default "fail"
   */
  onEviction?: OnEviction;
  /** Which jobs run again by themselves. Requires a CI server. @default none */
  rerun?: RerunPolicy;
  /**
   * Maximum number of attempts with `onEviction: resume`, 1 to 1000. A command that is lost in its
   * last attempt is not resumed again.
   * @default 10
   */
  maxAttempts?: number;
  /** Pace of re-checks. The defaults are right for production. */
  intervals?: RunnerIntervals;
}

/** Proxy settings, in the format of gha-runner-scale-set. */
export interface RunnerProxy {
  /** Proxy for `http://` URLs. */
  http?: ProxyServer;
  /** Proxy for `https://` URLs. */
  https?: ProxyServer;
  /**
   * Hosts that are reached directly, each with its subdomains. GitHub's runner supports host names
   * only, no IP addresses.
   */
  noProxy?: string[];
}

/** Proxy server, and the Secret with its credentials. */
export interface ProxyServer {
  /** `http://host:port`, without user and password. */
  url: string;
  /**
   * Secret in the pod's namespace with `username` and `password`, percent-encoded as in a URL. Jobs
   * can read them, as every program that uses the proxy must.
   */
  credentialSecretRef?: string;
}

/**
 * Key of a ConfigMap or Secret in the pod's namespace with PEM certificates. Exactly one of the two
 * must be set.
 */
export interface CertificateAuthority {
  configMapKeyRef?: KeyRef;
  secretKeyRef?: KeyRef;
}

/** Key of a ConfigMap or Secret. */
export interface KeyRef {
  name: string;
  key: string;
}

/** Storage of a step's files. The job workflow sets it. */
export interface StepStorage {
  /** Path of the step in the store, for all its attempts. */
  path: string;
  /**
   * Keys of the snapshots to restore SHARED_DIR from, in order of preference. Snapshots of the
   * step's own earlier attempts take precedence.
   */
  sharedDirSources: string[];
  /** Time limit for storing the files, from the end of the step (a duration). */
  timeout: string;
}

/** How a runner is stopped. */
export interface StopInput extends Durations<typeof STOP_TIMEOUTS> {
  /**
   * Command to run in the container after the end, with HOLDFAST_STOP_REASON, for at most
   * `cleanupTimeout`.
   */
  cleanupCommand?: string[];
  /**
   * Sequence of signals to send instead of the one received, such as `SIGINT,SIGTERM@5s`. Times
   * count from the start of the stop.
   */
  signals?: string;
  /**
   * Recipient of the stop signals. `group`: the command's whole process group. `process`: the
   * command only, whose own trap may forward them. SIGKILL at the end of the grace period is for
   * all processes.
   * @default "process" with `gracePeriod`, else "group"
   */
  target?: SignalTarget;
}

/** Recipient of stop signals: the command only, or its whole process group. */
export type SignalTarget = 'process' | 'group';

/**
 * How the supervisor becomes the first process of the container; see {@link
 * RunnerInput.supervisor}.
 */
export type SupervisorMode = 'inject' | 'image' | 'none';
/**
 * Effect of SIGTERM. `drain`: the job may finish within `stop.drainTimeout`. `stop`: stop signal,
 * grace period, SIGKILL. `checkpoint`: like `stop`, and the next attempt continues from the saved
 * state.
 */
export type OnTerm = 'drain' | 'stop' | 'checkpoint';
/**
 * Reaction to the loss of a busy runner. `fail`: the workflow ends, because a job is not
 * idempotent. `replace`: a new runner is started. `resume`: the same command runs again with the
 * state of the previous attempt.
 */
export type OnEviction = 'fail' | 'replace' | 'resume';

/**
 * PersistentVolumeClaim mounted into the runner container. The one named `state` is available as
 * `HOLDFAST_STATE_DIR`.
 */
export interface VolumeClaim {
  name: string;
  /** Absolute path in the container. */
  mountPath: string;
  /**
   * Name of the claim, which outlives this runner. If absent, the claim belongs to the workflow and
   * is deleted at its end.
   */
  claim?: string;
  /** Size, such as `10Gi`. The claim is created if it does not exist. */
  storage?: string;
  /** Storage class. @default the cluster's default class */
  storageClass?: string;
  /** @default ["ReadWriteOnce"] */
  accessModes?: ('ReadWriteOnce' | 'ReadWriteMany' | 'ReadWriteOncePod')[];
  /**
   * Initial content of a new claim: a `VolumeSnapshot` (apiGroup `snapshot.storage.k8s.io`) or
   * another claim in the pod's namespace.
   * @default nothing
   */
  dataSource?: { apiGroup?: string; kind: string; name: string };
  /**
   * Selector for the volumes that a new claim may be bound to, by their labels.
   * @default any volume of its class
   */
  selector?: {
    matchLabels?: Record<string, string>;
    matchExpressions?: {
      key: string;
      operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
      values?: string[];
    }[];
  };
  /** Annotations of a new claim. */
  annotations?: Record<string, string>;
}
