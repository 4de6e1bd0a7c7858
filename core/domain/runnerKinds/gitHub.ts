/** The runner of GitHub Actions: https://github.com/actions/runner */
import type { RunnerKind, RunnerRegistration } from './runnerKind.ts';

/**
 * Files that `config.sh` creates:
 * https://github.com/actions/runner/blob/main/src/Runner.Common/HostContext.cs
 */
const FILES = ['.runner*', '.credentials*'] as const;
const TOKEN_VARIABLE = 'RUNNER_TOKEN';

/**
 * Script that registers the runner. Options of `config.sh`:
 * https://github.com/actions/runner/blob/main/src/Runner.Listener/CommandSettings.cs. As the first
 * process of the container, the shell must handle SIGTERM itself. Otherwise a pod that is deleted
 * during the registration would last for its whole grace period.
 */
const REGISTER_SCRIPT = [
  'set -eu',
  'cd "${RUNNER_HOME:-/home/runner}"',
  'set -- --unattended --url "$RUNNER_URL" --name "$RUNNER_NAME" --labels "$RUNNER_LABELS"',
  'if [ -n "${RUNNER_GROUP:-}" ]; then set -- "$@" --runnergroup "$RUNNER_GROUP"; fi',
  'if [ "${RUNNER_EPHEMERAL:-false}" = true ]; then set -- "$@" --ephemeral; fi',
  'if [ "${RUNNER_DISABLE_UPDATE:-false}" = true ]; then set -- "$@" --disableupdate; fi',
  "trap 'exit 143' TERM",
  '# By environment, not as an argument: config.sh takes it out of its own.',
  `ACTIONS_RUNNER_INPUT_TOKEN="$${TOKEN_VARIABLE}" ./config.sh "$@" &`,
  'wait "$!"',
  `cp ${FILES.join(' ')} "$HOLDFAST_REGISTRATION_DIR"/`,
  "# The runner's image may have another user. Only its container mounts the directory.",
  `chmod a+r ${FILES.map((file) => `"$HOLDFAST_REGISTRATION_DIR"/${file}`).join(' ')}`,
];

/**
 * The same as deploy/images/runner-entrypoint.sh, line by line: uses the registration if there is
 * one (static runners), then starts the runner.
 */
const START_SCRIPT = [
  'set -eu',
  'cd "${RUNNER_HOME:-/home/runner}"',
  'if [ -n "${HOLDFAST_REGISTRATION_DIR:-}" ]; then',
  "  # What an earlier runner has left on a volume is not this one's.",
  `  rm -f ${FILES.join(' ')}`,
  `  cp ${FILES.map((file) => `"$HOLDFAST_REGISTRATION_DIR"/${file}`).join(' ')} .`,
  `  chmod go-rwx ${FILES.join(' ')}`,
  'fi',
  'exec ./run.sh',
];

/** Start of a line: `2024-01-01 00:00:00Z: `. */
const TIME = String.raw`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ: `;

/** Runner of GitHub Actions: registration, image, log lines, job hooks and exit statuses. */
export const GITHUB_RUNNER: Required<RunnerKind> & {
  readonly registration: Required<RunnerRegistration>;
} = {
  registration: {
    variables: [
      'RUNNER_NAME',
      TOKEN_VARIABLE,
      'RUNNER_URL',
      'RUNNER_JITCONFIG',
      'RUNNER_SCOPE',
      'RUNNER_LABELS',
      'RUNNER_GROUP',
      'RUNNER_EPHEMERAL',
      'RUNNER_DISABLE_UPDATE',
    ],
    // The runner reads each of its options from a variable with this prefix.
    variablePrefixes: ['ACTIONS_RUNNER_INPUT_'],
    needsCommand: false,
    token: {
      variable: TOKEN_VARIABLE,
      files: FILES,
      command: ['/bin/sh', '-c', REGISTER_SCRIPT.join('\n')],
    },
  },
  image: {
    // Pinned, because GitHub retires old versions but the time of an update is chosen here.
    // deploy/images/runner.Dockerfile builds on the same image.
    name: 'ghcr.io/actions/actions-runner:2.338.0',
    user: 1001,
    // The image has no entry point: https://github.com/actions/runner/blob/main/images/Dockerfile
    command: ['/bin/sh', '-c', START_SCRIPT.join('\n')],
  },
  // Label of every self-hosted runner of GitHub.
  defaultLabels: ['self-hosted'],
  // https://github.com/actions/runner/blob/main/src/Runner.Listener/JobDispatcher.cs
  log: {
    listening: new RegExp(`${TIME}Listening for Jobs$`),
    jobStarted: new RegExp(`${TIME}Running job: `),
    jobEnded: new RegExp(String.raw`${TIME}Job .* completed with result: \w+$`),
  },
  jobHooks: {
    started: 'ACTIONS_RUNNER_HOOK_JOB_STARTED',
    completed: 'ACTIONS_RUNNER_HOOK_JOB_COMPLETED',
  },
  // With ACTIONS_RUNNER_RETURN_VERSION_DEPRECATED_EXIT_CODE=1: GitHub no longer accepts this
  // version.
  exitStatuses: { 7: 'runner_deprecated' },
  stop: { onTerm: 'stop', signalTarget: 'group', finishesJob: false },
};
