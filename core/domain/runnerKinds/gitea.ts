/** The runner of Gitea Actions: https://gitea.com/gitea/runner */
import type { RunnerKind } from './runnerKind.ts';

/** Variable with the content of the runner's file `.runner`: its ID, its own token, its labels. */
export const GITEA_RUNNER_FILE = 'GITEA_RUNNER_FILE';
/** Variable that is `true` for a runner of one job, otherwise `false`. */
export const GITEA_RUNNER_EPHEMERAL = 'GITEA_RUNNER_EPHEMERAL';

/**
 * The same as deploy/images/gitea-runner-entrypoint.sh, line by line. Without a `timeout` the
 * runner cancels its job after three hours, and without a `shutdown_timeout` at SIGTERM, which it
 * reports as a success (seen with 1.0.8). The grace period
 * of the pod ends earlier: Gitea fails a job whose runner was killed.
 */
const START_SCRIPT = [
  'set -eu',
  'export HOME="${RUNNER_HOME:-/tmp/gitea-runner}"',
  'mkdir -p "$HOME"',
  'cd "$HOME"',
  '(umask 077 && printf %s "$GITEA_RUNNER_FILE" >.runner)',
  'ephemeral="${GITEA_RUNNER_EPHEMERAL:-true}"',
  'unset GITEA_RUNNER_FILE GITEA_RUNNER_EPHEMERAL',
  'cat >runner.yaml <<END',
  'runner: {timeout: 8760h, shutdown_timeout: 24h}',
  'cache: {enabled: false}',
  'END',
  '# The supervisor reads the log on standard output.',
  'if [ "$ephemeral" = true ]; then exec gitea-runner daemon --config runner.yaml 2>&1; fi',
  '# A static runner has a process for each job, because its log does not show the end of a job otherwise.',
  'stopped= child= status=0',
  'trap \'stopped=1; [ -z "$child" ] || kill -TERM "$child" 2>/dev/null || :\' TERM INT',
  'while [ -z "$stopped" ] && [ "$status" = 0 ]; do',
  '  gitea-runner daemon --once --config runner.yaml 2>&1 &',
  '  child=$!',
  '  # A signal that arrived before the line above.',
  '  [ -z "$stopped" ] || kill -TERM "$child" 2>/dev/null || :',
  '  # A signal ends `wait`, and not the runner.',
  '  while :; do',
  '    status=0',
  '    wait "$child" || status=$?',
  '    kill -0 "$child" 2>/dev/null || break',
  '  done',
  'done',
  'exit "$status"',
];

/** Start of a line: `time="2026-01-01T00:00:00Z" level=info msg="`. */
const MESSAGE = String.raw`^time="[^"]+" level=info msg="`;

/** Runner of Gitea Actions: registration, image, log lines and how it is stopped. */
export const GITEA_RUNNER: RunnerKind = {
  registration: {
    variables: [GITEA_RUNNER_FILE, GITEA_RUNNER_EPHEMERAL],
    variablePrefixes: ['GITEA_RUNNER_'],
    needsCommand: true,
  },
  image: {
    name: 'docker.io/gitea/runner:1.0.8',
    // The user of the image is root, which the runner does not need.
    user: 1000,
    command: ['/bin/sh', '-c', START_SCRIPT.join('\n')],
  },
  // Gitea gives runners no labels of its own.
  defaultLabels: ['self-hosted'],
  // https://gitea.com/gitea/runner/src/branch/main/internal/app/cmd/daemon.go. A runner of
  // one job shuts down when its job has been reported.
  log: {
    listening: new RegExp(`${MESSAGE}runner: .+, declare successfully"$`),
    jobStarted: new RegExp(String.raw`${MESSAGE}task \d+ repo is `),
    jobEnded: new RegExp(`${MESSAGE}runner: .+ shutdown initiated, `),
  },
  exitStatuses: {},
  // At SIGTERM the runner logs that it shuts down, and goes on with its job.
  stop: { onTerm: 'stop', signalTarget: 'process', finishesJob: true },
};
