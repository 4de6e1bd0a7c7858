/** The options and results of the lab. */

export const COMPONENT_NAMES = [
  'temporal',
  'postgres',
  'temporal-matching',
  'temporal-frontend',
  'temporal-history',
  'temporal-worker',
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'containerd',
  'kubelet',
  'kwok',
  'versitygw',
  'gitea',
] as const;
export type ComponentName = (typeof COMPONENT_NAMES)[number];

/**
 * `kubelet`: this machine is a real node (Linux, root). `kwok`: fake nodes for thousands of pods.
 */
export type Nodes = 'none' | 'kubelet' | 'kwok';

/**
 * `dev`: the dev server on SQLite, one process with its UI. `cluster`: one process per service, on
 * PostgreSQL, without a UI.
 */
export const TEMPORAL_SERVERS = ['dev', 'cluster'] as const;
export type TemporalServer = (typeof TEMPORAL_SERVERS)[number];

export interface LabOptions {
  /** Folder of data, logs and process records. @default ".holdfast/lab" in the current directory */
  stateDir?: string;
  /** `true`: the server that the lab has, or the dev server. @default true */
  temporal?: boolean | TemporalServer;
  /** etcd, API server, controller manager, scheduler. @default true */
  kubernetes?: boolean;
  /** Nodes to add. `none` does not remove existing ones. @default "none" */
  nodes?: Nodes;
  /** A server that speaks S3 (versitygw), over a folder. @default false */
  s3?: boolean;
  /** A Gitea server with an organization, a repository and tokens. @default false */
  gitea?: boolean;
  /**
   * Port of Temporal's gRPC frontend on 127.0.0.1. @default a free one, stored in the state folder
   */
  temporalPort?: number;
  /** Port of the dev server's UI on 127.0.0.1. @default a free one, stored in the state folder */
  uiPort?: number;
  /** Receives a line about each step that takes time. @default no output */
  progress?: (line: string) => void;
}

export interface DownOptions {
  /** @default ".holdfast/lab" in the current directory */
  stateDir?: string;
  /** Also deletes all data (Temporal's database, etcd, images); the logs stay. @default false */
  purge?: boolean;
  progress?: (line: string) => void;
}

export interface LabState {
  /** Absolute. */
  stateDir: string;
  /** `uiUrl`: of the dev server. */
  temporal?: { address: string; uiUrl?: string; namespace: string };
  kubernetes?: { kubeconfig: string; server: string };
  nodes?: 'kubelet' | 'kwok';
  s3?: S3Access;
  gitea?: GiteaAccess;
  /**
   * With `nodes: kubelet`: address of this machine that pods reach. Servers for pods listen on it,
   * or on 0.0.0.0.
   */
  hostAddress?: string;
}

/** A server that speaks S3, its buckets named in the path. */
export interface S3Access {
  /** From this machine. */
  endpoint: string;
  /** From pods. */
  endpointForPods?: string;
  accessKeyId: string;
  secretAccessKey: string;
  /** Where its buckets are folders, and their objects files. */
  folder: string;
}

/** A Gitea server with the organization `acme` and its repository `acme/app`. */
export interface GiteaAccess {
  /** From this machine. */
  url: string;
  /** From pods. */
  urlForPods?: string;
  /**
   * Name of the administrator. Requests from this machine with it in X-WEBAUTH-USER are accepted.
   */
  user: string;
  /** Token of the administrator, with all scopes. */
  token: string;
}

export interface ComponentStatus {
  /** `down`: belongs to this lab but does not run. `unhealthy`: runs, but does not answer. */
  state: 'healthy' | 'unhealthy' | 'down';
  pid?: number;
  log: string;
}

export interface LabStatus extends LabState {
  components: Partial<Record<ComponentName, ComponentStatus>>;
}

/**
 * A component is not available on this machine. The message contains all attempts to find it, and
 * the fix.
 */
export class ComponentUnavailableError extends Error {
  override readonly name = 'ComponentUnavailableError';
  readonly component: string;

  constructor(component: string, message: string, cause?: unknown) {
    super(message, { cause });
    this.component = component;
  }
}

/**
 * A component started but did not become ready, or died. The message contains the end of its log
 * and the fix.
 */
export class ComponentFailedError extends Error {
  override readonly name = 'ComponentFailedError';
  readonly component: string;

  constructor(component: string, message: string) {
    super(message);
    this.component = component;
  }
}
