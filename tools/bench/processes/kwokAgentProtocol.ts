/** What the benchmark and its KWOK agent (a process of its own) say to each other over Node's IPC channel. */

/** Told to the agent when it is forked, as one JSON argument. */
export interface KwokAgentOptions {
  readonly kubeconfig: string;
  readonly namespace: string;
  readonly labelSelector: string;
  /** Where the simulator listens. */
  readonly simulatorUrl: string;
  /** Timing of the pods, until the benchmark sets another. */
  readonly timing: PodTiming;
}

/** How long a simulated runner and its node take. */
export interface PodTiming {
  /** From the start of the container until the runner connects to the CI server (ms). */
  readonly startupMs: number;
  /** From the deletion of the pod until it no longer exists (ms). */
  readonly deletionMs: number;
}

/** One step of a runner's pod, with the time (ms since the epoch) at which the agent saw or did it. */
export interface PodStep {
  readonly type: 'step';
  /**
   * `created`, `running`, `gone`: the pod's watch said so. `online`: the runner has a session at the CI server. `jobStarted`,
   * `jobFinished`: the CI server has accepted the job's start and end. `exited`: the status patch that ends the container is accepted.
   */
  readonly step:
    'created' | 'running' | 'online' | 'jobStarted' | 'jobFinished' | 'exited' | 'gone';
  readonly workflowId: string;
  readonly pod: string;
  readonly at: number;
}

export type AgentMessage =
  | { readonly type: 'ready' }
  | PodStep
  /** All containers of an `endAll` have been ended. */
  | { readonly type: 'allEnded'; readonly count: number }
  | { readonly type: 'failed'; readonly message: string };

/** Messages from the benchmark to its agent. */
export type AgentRequest = EndAll | SetTiming;

/** Sets the timing of all pods created from now on. */
export interface SetTiming {
  readonly type: 'timing';
  readonly timing: PodTiming;
}

/** Ends the containers of these workflows' runners with exit code 0, whatever their runners do. */
export interface EndAll {
  readonly type: 'endAll';
  readonly workflowIds: readonly string[];
}
