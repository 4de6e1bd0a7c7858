/** GitHub's runner image, as pods get it where neither the settings nor the runner name another. */

/** Pinned: GitHub retires old versions, we choose when. deploy/images/runner.Dockerfile builds on the same. */
export const RUNNER_IMAGE = 'ghcr.io/actions/actions-runner:2.338.0';

/** The image's user `runner`: Kubernetes tells by the number only that it is not root. */
export const RUNNER_IMAGE_USER = 1001;

/** deploy/images/runner-entrypoint.sh, line by line: takes up its registration where it has one (static runners), then runs. */
const SCRIPT = [
  'set -eu',
  'cd "${RUNNER_HOME:-/home/runner}"',
  'if [ -n "${HOLDFAST_REGISTRATION_DIR:-}" ]; then',
  "  # What an earlier runner has left on a volume is not this one's.",
  '  rm -f .runner* .credentials*',
  '  cp "$HOLDFAST_REGISTRATION_DIR"/.runner* "$HOLDFAST_REGISTRATION_DIR"/.credentials* .',
  'fi',
  'exec ./run.sh',
];

/** The image has no entry point of its own (https://github.com/actions/runner/blob/main/images/Dockerfile). */
export const RUNNER_IMAGE_COMMAND: readonly string[] = ['/bin/sh', '-c', SCRIPT.join('\n')];
