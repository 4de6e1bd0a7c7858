/** All that is known of one kind of runner. Computes and the supervisor read it; nothing else knows a runner's program. */
export interface RunnerKind {
  /** Registration at the CI server. Absent: no CI server knows the runner, and its command is its only job. */
  readonly registration?: RunnerRegistration;
  /** Image of runners that name none. Absent: each names its own. */
  readonly image?: RunnerImage;
  /** Labels of runners that name none. */
  readonly defaultLabels: readonly string[];
  /** Lines of the runner's log that tell what it does. Absent: its log tells nothing. */
  readonly log?: RunnerLogSigns;
  /** Variables that name the scripts which the runner executes before and after each job. Absent: it has none. */
  readonly jobHooks?: RunnerJobHooks;
  /** Exit statuses that tell more than that the runner failed. */
  readonly exitStatuses: Readonly<Record<number, ExitMeaning>>;
  /** How the runner is stopped where its input does not say. */
  readonly stop: RunnerStop;
}

/** `runner_deprecated`: the CI server no longer accepts the version of the runner. */
export type ExitMeaning = 'runner_deprecated';

/** Registration of a kind of runner at its CI server. */
export interface RunnerRegistration {
  /** Variables that carry the registration. Only Holdfast may set them. */
  readonly variables: readonly string[];
  /** Prefixes of further variables that only Holdfast may set. */
  readonly variablePrefixes: readonly string[];
  /** Variable with a token that is valid for the whole scope. No container that a job runs in ever has it. */
  readonly tokenVariable: string;
  /** Files in the runner's folder that a registration consists of, as patterns of the shell. */
  readonly files: readonly string[];
  /** Registers with the token, and copies {@link files} into the folder that HOLDFAST_REGISTRATION_DIR names. */
  readonly command: readonly string[];
}

/** Default image of a kind of runner. */
export interface RunnerImage {
  readonly name: string;
  /** Numeric user of the image. From a name Kubernetes cannot tell that it is not root. */
  readonly user: number;
  /** Uses the registration in HOLDFAST_REGISTRATION_DIR, if there is one, and executes the runner. */
  readonly command: readonly string[];
}

/** Texts of single lines, without the end of the line. */
export interface RunnerLogSigns {
  /** The runner waits for a job. */
  readonly listening: RegExp;
  readonly jobStarted: RegExp;
  readonly jobEnded: RegExp;
}

/** Names of variables. */
export interface RunnerJobHooks {
  readonly started: string;
  readonly completed: string;
}

/** Default way to stop a kind of runner. */
export interface RunnerStop {
  readonly onTerm: 'drain' | 'stop' | 'checkpoint';
  readonly signalTarget: 'process' | 'group';
}
