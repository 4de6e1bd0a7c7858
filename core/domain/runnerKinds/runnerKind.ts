/**
 * Properties of one kind of runner. Computes and the supervisor read them. No other code knows the
 * program of a runner.
 */
export interface RunnerKind {
  /**
   * Registration at the CI server. Absent if the runner has no CI server and its command is its
   * only job.
   */
  readonly registration?: RunnerRegistration;
  /** Image of runners without an image of their own. Absent if each must have one. */
  readonly image?: RunnerImage;
  /** Labels of runners without labels of their own. */
  readonly defaultLabels: readonly string[];
  /** Lines of the runner's log that report its state. Absent if its log does not. */
  readonly log?: RunnerLogSigns;
  /**
   * Variables for the scripts that the runner executes before and after each job. Absent if it has
   * none.
   */
  readonly jobHooks?: RunnerJobHooks;
  /** Meanings of exit statuses, beyond that the runner failed. */
  readonly exitStatuses: Readonly<Record<number, ExitMeaning>>;
  /** Default way to stop the runner. */
  readonly stop: RunnerStop;
}

/**
 * Meaning of an exit status. `runner_deprecated`: the CI server no longer accepts the version of
 * the runner.
 */
export type ExitMeaning = 'runner_deprecated';

/** Registration of a kind of runner at its CI server. */
export interface RunnerRegistration {
  /** Variables with the registration. Only Holdfast may set them. */
  readonly variables: readonly string[];
  /** Prefixes of further variables that only Holdfast may set. */
  readonly variablePrefixes: readonly string[];
  /**
   * Whether only the command of {@link RunnerImage} reads the registration, and not the runner. An
   * entry point of another image then cannot.
   */
  readonly needsCommand: boolean;
  /** Registration by the runner itself. Absent if the worker registers every runner. */
  readonly token?: TokenRegistration;
}

/** Registration of a runner by itself, with a token. */
export interface TokenRegistration {
  /**
   * Variable with a token that is valid for the whole scope. A container that runs a job never gets
   * it.
   */
  readonly variable: string;
  /** Files of a registration in the runner's directory, as shell patterns. */
  readonly files: readonly string[];
  /**
   * Command that registers with the token and copies {@link files} to the directory
   * HOLDFAST_REGISTRATION_DIR.
   */
  readonly command: readonly string[];
}

/** Default image of a kind of runner. */
export interface RunnerImage {
  readonly name: string;
  /** Numeric user of the image. Kubernetes cannot verify by a name that the user is not root. */
  readonly user: number;
  /**
   * Command that uses the registration in HOLDFAST_REGISTRATION_DIR, if there is one, and executes
   * the runner.
   */
  readonly command: readonly string[];
}

/** Patterns of single lines, without the line break. */
export interface RunnerLogSigns {
  /** The runner waits for a job. */
  readonly listening: RegExp;
  readonly jobStarted: RegExp;
  readonly jobEnded: RegExp;
}

/** Names of the variables. */
export interface RunnerJobHooks {
  readonly started: string;
  readonly completed: string;
}

/** Default way to stop a kind of runner. */
export interface RunnerStop {
  readonly onTerm: 'drain' | 'stop' | 'checkpoint';
  readonly signalTarget: 'process' | 'group';
  /**
   * Whether the runner finishes its job after SIGTERM, and then exits with 0. From the signal on, its
   * log does not show the end of the job. Otherwise a signal interrupts the job.
   */
  readonly finishesJob: boolean;
}
