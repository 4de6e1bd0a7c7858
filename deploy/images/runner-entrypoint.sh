#!/bin/bash
# What a runner's container runs in GitHub's image: registers where there is a token (static runners), then runs.
# With a JIT config (ACTIONS_RUNNER_INPUT_JITCONFIG) there is nothing to register: run.sh reads it itself.
# worker/settings/runnerImage.ts carries the same text, for GitHub's image as it is.
set -eu
cd "${RUNNER_HOME:-/home/runner}"
if [ -n "${RUNNER_TOKEN:-}" ]; then
  options=(--unattended --url "$RUNNER_URL" --name "$RUNNER_NAME" --labels "$RUNNER_LABELS")
  if [ -n "${RUNNER_GROUP:-}" ]; then options+=(--runnergroup "$RUNNER_GROUP"); fi
  if [ "${RUNNER_EPHEMERAL:-false}" = true ]; then options+=(--ephemeral); fi
  # By environment, not as an argument: arguments can be read by every process of the container.
  ACTIONS_RUNNER_INPUT_TOKEN="$RUNNER_TOKEN" ./config.sh "${options[@]}"
  unset RUNNER_TOKEN
fi
exec ./run.sh
