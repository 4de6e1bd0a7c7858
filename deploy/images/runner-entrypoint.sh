#!/bin/sh
# What a runner's container runs in GitHub's image. A static runner has been registered by an init container, which leaves the runner's files in
# HOLDFAST_REGISTRATION_DIR (core/domain/runnerKinds/gitHub.ts). With a JIT config (ACTIONS_RUNNER_INPUT_JITCONFIG) there is nothing
# to register: run.sh reads it itself.
# core/domain/runnerKinds/gitHub.ts carries the same text, for GitHub's image as it is.
set -eu
cd "${RUNNER_HOME:-/home/runner}"
if [ -n "${HOLDFAST_REGISTRATION_DIR:-}" ]; then
  # What an earlier runner has left on a volume is not this one's.
  rm -f .runner* .credentials*
  cp "$HOLDFAST_REGISTRATION_DIR"/.runner* "$HOLDFAST_REGISTRATION_DIR"/.credentials* .
  chmod go-rwx .runner* .credentials*
fi
exec ./run.sh
