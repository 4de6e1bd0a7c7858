/**
 * Input of the `runner` workflow. The tables of durations are where each is written: its name, its default and what it means. Their types
 * here, their validation and their milliseconds (core/input/) follow from the tables.
 */
import type { CiServerKind } from '../domain/ciServerKind.ts';
import type { Durations } from '../domain/duration.ts';

/** Deadlines of a runner's life, with their defaults. */
export const RUNNER_TIMEOUTS = {
  /** For registration, Secret and pod together, retries included. @default "1h" */
  provisioning: '1h',
  /** From the pod's creation. @default "5m" */
  podUnscheduled: '5m',
  /** From the pod's creation. @default "10m" */
  podPending: '10m',
  /** From the container's start. @default "10m" */
  registration: '10m',
  /** From Idle. @default off */
  idle: undefined,
  /** From Busy. The default is also the cap, where the worker's config names no other. @default "24h" */
  jobTimeout: '24h',
  /** From the runner's end: until its registration, which the CI server has not removed by then, is handed to a workflow of its own. @default "1h" */
  unregistration: '1h',
  /** From the start of a life that resumes (`onEviction: resume`), its waits included: it is stopped then, and not resumed again. @default "7d" */
  maxAge: '7d',
} as const;

/** The parts of the grace ledger, with their defaults. */
export const STOP_TIMEOUTS = {
  /** With `onTerm: drain`, which needs it: how long the job may go on after SIGTERM. @default none */
  drainTimeout: undefined,
  /** From the stop's signal to SIGKILL. @default "10s" */
  signalTimeout: '10s',
  /** On top: for the records and the cleanup command. @default "5s" */
  cleanupTimeout: '5s',
  /** In place of these two, of a plain command: the grace of a step, from which both follow (docs/supervisor.md). @default none */
  gracePeriod: undefined,
} as const;

/** Pace of a runner's re-checks, with the defaults that are right for production. */
export const RUNNER_INTERVALS = {
  /** How often a wait for the pod looks live again. @default "10m" */
  resync: '10m',
  /** Between two DELETEs of a busy static runner. @default "1m" */
  busyRetry: '1m',
  /** Safety re-check of a busy ephemeral runner. @default "10m" */
  busyCheck: '10m',
  /** Between two looks for a runner that may be about to register. @default "10s" */
  absentCheck: '10s',
  /** Between two tries with a refused credential. @default "5m" */
  credentialsRetry: '5m',
  /** Between two looks for a runner that is coming online; doubles up to 30 s. @default "2s" */
  onlineCheck: '2s',
  /** How long a runner that was never seen online may take to end after its registration was removed. @default "2m" */
  removalGrace: '2m',
  /** How long a runner whose registration is gone has to go on saying that it is idle, before its pod goes. @default "3s" */
  idleConfirmation: '3s',
  /** How long a stop waits for the CI server's first answer before it stops the pod anyway. @default "30s" */
  stopResponseTimeout: '30s',
  /** How old the CI server's lists may be: what is missing from one may have come since. @default "1m" */
  listMaxAge: '1m',
  // A worker that was cut off creates for a minute, its request takes half of one, and an API server carries out for a minute what nobody awaits.
  /** How long after an interrupted provisioning something of it may still appear. @default "2m30s" */
  lateCreationWindow: '2m30s',
} as const;

export type RunnerTimeouts = Durations<typeof RUNNER_TIMEOUTS>;
export type RunnerIntervals = Durations<typeof RUNNER_INTERVALS>;

/** Input of the `runner` workflow: one JSON object. Durations are strings such as `30s`, `10m`, `1h30m`. */
export interface RunnerInput {
  /** Prefix of the runner's name at the CI server; a hash of this execution is appended. Events of jobs find the runner as long as its workflow's id is `runner-<name>`. Default: the workflow id without `runner-`. */
  name?: string;
  /** Kind of CI server, that of the credential. `none`: a plain command (`command`) that no CI server knows; it has every other part of the life. @default "github" */
  ciServer?: CiServerKind | 'none';
  /** Exactly one of these three; none with `ciServer: none`. */
  organization?: string;
  /** `owner/repo`. */
  repository?: string;
  enterprise?: string;
  /** A credential named in the worker's config. @default "default" */
  credential?: string;
  /** Name of the runner group. Repositories have none. Default: the group that the CI server has by default. */
  runnerGroup?: string;
  /** In place of its name: the ID of the runner group. */
  runnerGroupId?: string;
  /** 1 to 100. Default: those of the CI server's runners; `["self-hosted"]` for GitHub. */
  labels?: string[];
  /** One job, then gone; `false`: a static runner, which takes many. @default true */
  ephemeral?: boolean;
  /**
   * Of a static runner: it never updates itself (`config.sh --disableupdate`), because its image is fixed; GitHub then takes its version for 30 days after the next one has come out. `false` for a GitHub Enterprise Server that
   * does not know this. For a JIT config there is no such choice: https://docs.github.com/en/actions/reference/runners/self-hosted-runners#runner-software-updates-on-self-hosted-runners
   * @default true
   */
  disableUpdate?: boolean;
  /** Name of the set this runner belongs to. */
  set?: string;
  /** Id of the `job` workflow whose step this is, which is told of its pods; needs `ciServer: none`. */
  job?: string;
  /** With `job`: where what it leaves is kept, if the worker has a store. */
  storage?: StepStorage;
  /** It runs what an outsider has written: its pod refers to no Secret, service account or claim, and to nothing of the node, whatever the worker's pod policy allows. @default false */
  untrusted?: boolean;
  /** Kubernetes namespace of the pod. Default: the worker's. */
  namespace?: string;
  /** Image of the runner container. Default: the worker's. */
  image?: string;
  command?: string[];
  args?: string[];
  env?: Record<string, string>;
  /** PodTemplateSpec fragment; the container named `runner` is the runner's. */
  pod?: {
    metadata?: { labels?: Record<string, string>; annotations?: Record<string, string> };
    spec?: Record<string, unknown>;
  };
  /**
   * How the supervisor gets to be the first process of the container: `inject` copies it in (needs the command to be known),
   * `image`: the image's own entry point starts it, `none`: the command runs bare. Default: the worker's.
   */
  supervisor?: SupervisorMode;
  /** Persistent volumes of the runner container. */
  volumeClaims?: VolumeClaim[];
  /** By which what runs in the runner's container reaches the world. @default directly, or as the image is set */
  proxy?: RunnerProxy;
  /** Authorities that the runner and its jobs trust, as for a GitHub Enterprise Server with a certificate of your own. @default those of its image */
  ca?: CertificateAuthority;
  timeouts?: RunnerTimeouts;
  /** The grace ledger, additive; the pod's terminationGracePeriodSeconds is derived from it. */
  stop?: StopInput;
  /** What SIGTERM means inside the pod. `checkpoint` needs `onEviction: resume`. @default "stop" */
  onTerm?: OnTerm;
  /** What becomes of the life when a busy runner loses its pod. `resume` needs `ciServer: none`. @default "fail" */
  onEviction?: OnEviction;
  /** With `onEviction: resume`: a command that is lost in its last attempt is not resumed again. 1 to 1000. @default 10 */
  maxAttempts?: number;
  /** Pace of re-checks; the defaults are right for production. */
  intervals?: RunnerIntervals;
}

/** As gha-runner-scale-set has it. */
export interface RunnerProxy {
  /** For addresses with `http://`. */
  http?: ProxyServer;
  /** For addresses with `https://`. */
  https?: ProxyServer;
  /** Hosts that are reached directly, each with those below it. GitHub's runner takes names alone, no addresses. */
  noProxy?: string[];
}

export interface ProxyServer {
  /** `http://host:port`, without user and password. */
  url: string;
  /** Secret in the pod's namespace with `username` and `password`, percent-encoded as in a URL. Jobs can read them, as every program that goes through the proxy has to. */
  credentialSecretRef?: string;
}

/** Exactly one of the two: where in the pod's namespace the certificates are, PEM. */
export interface CertificateAuthority {
  configMapKeyRef?: KeyRef;
  secretKeyRef?: KeyRef;
}

export interface KeyRef {
  name: string;
  key: string;
}

/** Of a job's step, in the store: the job says it. */
export interface StepStorage {
  /** Of the step, all its attempts. */
  path: string;
  /** Keys of the snapshots that its SHARED_DIR may begin with, the best first; those of its own earlier attempts come before them. */
  sharedDirSources: string[];
  /** How long storing is tried, from the step's end. */
  timeout: string;
}

export interface StopInput extends Durations<typeof STOP_TIMEOUTS> {
  /** Runs in the container after the end, with HOLDFAST_STOP_REASON, for at most `cleanupTimeout`. */
  cleanupCommand?: string[];
  /** Instead of the one signal received, a sequence: `SIGINT,SIGTERM@5s`, counted from the stop's start. */
  signals?: string;
  /**
   * Who gets a stop's signals: the command's whole process `group`, or the command's `process` alone, whose own trap may pass them on. At the
   * end of the grace SIGKILL is for all. @default "process" with `gracePeriod`, else "group"
   */
  target?: SignalTarget;
}

export type SignalTarget = 'process' | 'group';

export type SupervisorMode = 'inject' | 'image' | 'none';
/** `drain`: the job may finish within `stop.drainTimeout`; `stop`: signal, grace, kill; `checkpoint`: as stop, and the next attempt goes on. */
export type OnTerm = 'drain' | 'stop' | 'checkpoint';
/** `fail`: a job is not idempotent; `replace`: a new runner; `resume`: the same work again, with the state of the attempt before. */
export type OnEviction = 'fail' | 'replace' | 'resume';

/** A PersistentVolumeClaim mounted into the runner container. The one called `state` is `HOLDFAST_STATE_DIR`. */
export interface VolumeClaim {
  name: string;
  /** Absolute path in the container. */
  mountPath: string;
  /** Name of the claim, which outlives this runner. Absent: one of this life's own, which goes with it. */
  claim?: string;
  /** Size, such as `10Gi`: the claim is made where it does not exist yet. */
  storage?: string;
  /** Default: the cluster's. */
  storageClass?: string;
  /** @default ["ReadWriteOnce"] */
  accessModes?: ('ReadWriteOnce' | 'ReadWriteMany' | 'ReadWriteOncePod')[];
  /** What a claim that is made begins with: a `VolumeSnapshot` (apiGroup `snapshot.storage.k8s.io`), or another claim, of the pod's namespace. @default nothing */
  dataSource?: { apiGroup?: string; kind: string; name: string };
  /** Which volumes a claim that is made may be bound to, by their labels. @default any of its class */
  selector?: {
    matchLabels?: Record<string, string>;
    matchExpressions?: {
      key: string;
      operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
      values?: string[];
    }[];
  };
  /** Of a claim that is made. */
  annotations?: Record<string, string>;
}
