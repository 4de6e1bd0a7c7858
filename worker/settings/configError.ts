/** Error in a setting. */
export interface ConfigProblem {
  /** Name of the environment variable. */
  readonly setting: string;
  /** Fault and its fix, on one line, without any secret. */
  readonly message: string;
}

/** Error for invalid settings, with all problems. Its message has one line for each. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[]) {
    super(problems.map((problem) => `${problem.setting}: ${problem.message}`).join('\n'));
    this.problems = problems;
  }
}
