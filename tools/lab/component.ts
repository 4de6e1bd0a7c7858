import type { BinaryName } from './versions.ts';
import type { ComponentName, Nodes, TemporalServer } from './options.ts';
import type { User } from './process.ts';

/** The lab's persistent state: `<stateDir>/lab.json`. */
export interface LabRecord {
  /**
   * Hash of the state folder's path (8 hex digits), for machine-wide names: bridge, cgroup, run
   * folder.
   */
  readonly id: string;
  temporal: 'none' | TemporalServer;
  kubernetes: boolean;
  nodes: Nodes;
  s3?: boolean;
  gitea?: boolean;
  /** Of Gitea's administrator. */
  giteaToken?: string;
  readonly ports: Record<string, number>;
  /** Bearer token of the cluster's admin, and of the node. */
  readonly tokens: { readonly admin: string; readonly node: string };
  /** The /24 of the pods, e.g. `10.211.3`. */
  podNetwork?: string;
  /** How containerd lays out images here. */
  snapshotter?: 'overlayfs' | 'native';
}

/** Arguments of a component's functions. */
export interface Lab {
  /** Absolute. */
  readonly dir: string;
  readonly record: LabRecord;
  /** Paths of the binaries that the components list in `binaries`. */
  readonly binaries: Partial<Record<BinaryName, string>>;
  readonly progress: (line: string) => void;
}

/** How a component's process is started. */
export interface Command {
  readonly args: string[];
  readonly env?: Record<string, string>;
  /** User of the process. @default the user of the lab */
  readonly user?: User;
}

/** One process of the lab. */
export interface Component {
  readonly name: ComponentName;
  /** The first is the process itself. */
  readonly binaries: readonly [BinaryName, ...BinaryName[]];
  /**
   * Argument that distinguishes the process from those of other components with the same program.
   */
  readonly mark?: string;
  /** Ports it listens on, by their key in the record. */
  readonly ports: readonly string[];
  /** Must be ready before this one starts. */
  readonly after: readonly ComponentName[];
  /**
   * Checks whether the component can run on this machine. Called before any component starts.
   * @throws ComponentUnavailableError if it cannot
   */
  check?(lab: Lab): Promise<void>;
  /** Writes the component's files. Idempotent: also called before a restart. */
  prepare?(lab: Lab): Promise<void>;
  command(lab: Lab): Command | Promise<Command>;
  /** Answers now. */
  healthy(lab: Lab): Promise<boolean>;
  /** Good for use after a start. Default: healthy. */
  ready?(lab: Lab): Promise<boolean>;
  /** Done once after each start, when it is ready. */
  finish?(lab: Lab): Promise<void>;
  readonly readyWithinMs: number;
  readonly stop: { readonly signal: NodeJS.Signals; readonly withinMs: number };
  /** What a user should check if the component does not become ready. */
  readonly fix: string;
}

export function port(lab: Lab, key: string): number {
  const value = lab.record.ports[key];
  if (value === undefined)
    throw new Error(
      `the lab in ${lab.dir} has no port "${key}": run \`lab down\`, then \`lab up\``,
    );
  return value;
}
