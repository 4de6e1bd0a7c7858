/** The public vocabulary of the lab: what can be asked for, and what one gets. */

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

/** `kubelet`: this machine is a real node (Linux, root). `kwok`: fake nodes for thousands of pods. */
export type Nodes = 'none' | 'kubelet' | 'kwok';

/** `dev`: the dev server on SQLite, one process with its UI. `cluster`: each of the server's services in a process of its own, on PostgreSQL, without a UI. */
export const TEMPORAL_SERVERS = ['dev', 'cluster'] as const;
export type TemporalServer = (typeof TEMPORAL_SERVERS)[number];

export interface LabOptions {
  /** Folder of data, logs and process records. @default ".holdfast/lab" in the current directory */
  stateDir?: string;
  /** `true`: the server that the lab has, or the dev server. @default true */
  temporal?: boolean | TemporalServer;
  /** etcd, API server, controller manager, scheduler. @default true */
  kubernetes?: boolean;
  /** Adds nodes; `none` takes none away. @default "none" */
  nodes?: Nodes;
  /** A server that speaks S3 (versitygw), over a folder. @default false */
  s3?: boolean;
  /** A Gitea server with an organization, a repository and tokens. @default false */
  gitea?: boolean;
  /** Port of Temporal's gRPC front end on 127.0.0.1. Default: a free one, remembered in the state folder. */
  temporalPort?: number;
  /** Port of the dev server's UI on 127.0.0.1. Default: a free one, remembered in the state folder. */
  uiPort?: number;
  /** Told about every step that takes time. Default: nobody. */
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
  /** With `nodes: kubelet`: an address of this machine that pods reach. Servers for pods listen on it (or on 0.0.0.0). */
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
  /** The administrator, as whose name the header X-WEBAUTH-USER is accepted from this machine. */
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

/** A component cannot be had on this machine. Says what was tried and what would help. */
export class ComponentUnavailableError extends Error {
  override readonly name = 'ComponentUnavailableError';
  readonly component: string;

  constructor(component: string, message: string, cause?: unknown) {
    super(message, { cause });
    this.component = component;
  }
}

/** A component started but did not become ready, or died. The message carries the end of its log and the fix. */
export class ComponentFailedError extends Error {
  override readonly name = 'ComponentFailedError';
  readonly component: string;

  constructor(component: string, message: string) {
    super(message);
    this.component = component;
  }
}
