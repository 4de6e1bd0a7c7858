/** GitHub's runner image, as pods get it where neither the settings nor the runner name another. */

/** Pinned: GitHub retires old versions, we choose when. deploy/images/runner.Dockerfile builds on the same. */
export const RUNNER_IMAGE = 'ghcr.io/actions/actions-runner:2.338.0';

/** deploy/images/runner-entrypoint.sh, line by line: registers where there is a token (static runners), then runs. */
const SCRIPT = [
  'set -eu',
  'cd "${RUNNER_HOME:-/home/runner}"',
  'if [ -n "${RUNNER_TOKEN:-}" ]; then',
  '  options=(--unattended --url "$RUNNER_URL" --name "$RUNNER_NAME" --labels "$RUNNER_LABELS")',
  '  if [ -n "${RUNNER_GROUP:-}" ]; then options+=(--runnergroup "$RUNNER_GROUP"); fi',
  '  if [ "${RUNNER_EPHEMERAL:-false}" = true ]; then options+=(--ephemeral); fi',
  '  # By environment, not as an argument: arguments can be read by every process of the container.',
  '  ACTIONS_RUNNER_INPUT_TOKEN="$RUNNER_TOKEN" ./config.sh "${options[@]}"',
  '  unset RUNNER_TOKEN',
  'fi',
  'exec ./run.sh',
];

/** The image has no entry point of its own (https://github.com/actions/runner/blob/main/images/Dockerfile). */
export const RUNNER_IMAGE_COMMAND: readonly string[] = ['/bin/bash', '-c', SCRIPT.join('\n')];
