/** Messages between the benchmark and its KWOK agent, a child process, over Node's IPC channel. */

/** Options of the agent, passed as one JSON argument. */
export interface KwokAgentOptions {
  readonly kubeconfig: string;
  readonly namespace: string;
  readonly labelSelector: string;
  /** Address of the simulator. */
  readonly simulatorUrl: string;
  /** Timing of the pods, until the benchmark sets another. */
  readonly timing: PodTiming;
}

/** Delays of a simulated runner and its node. */
export interface PodTiming {
  /** From the start of the container until the runner connects to the CI server (ms). */
  readonly startupMs: number;
  /** From the deletion of the pod until it no longer exists (ms). */
  readonly deletionMs: number;
}

/** One step of a runner's pod, with its time (ms since the epoch). */
export interface PodStep {
  readonly type: 'step';
  /**
   * `created`, `running`, `gone`: event of the pod's watch. `online`: the runner has a session at
   * the CI server. `jobStarted`, `jobFinished`: the CI server has accepted the job's start or end.
   * `exited`: the API server has accepted the status patch that ends the container.
   */
  readonly step:
    'created' | 'running' | 'online' | 'jobStarted' | 'jobFinished' | 'exited' | 'gone';
  readonly workflowId: string;
  readonly pod: string;
  readonly at: number;
}

/** Messages from the agent to the benchmark. */
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

/** Ends the containers of these workflows' runners with exit code 0, also during a job. */
export interface EndAll {
  readonly type: 'endAll';
  readonly workflowIds: readonly string[];
}
