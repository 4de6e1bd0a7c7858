#!/bin/sh
# What a runner's container runs in Gitea's image. The worker has registered the runner; GITEA_RUNNER_FILE is the content of its file
# .runner. core/domain/runnerKinds/gitea.ts carries the same text, for Gitea's image as it is.
set -eu
export HOME="${RUNNER_HOME:-/tmp/gitea-runner}"
mkdir -p "$HOME"
cd "$HOME"
(umask 077 && printf %s "$GITEA_RUNNER_FILE" >.runner)
ephemeral="${GITEA_RUNNER_EPHEMERAL:-true}"
unset GITEA_RUNNER_FILE GITEA_RUNNER_EPHEMERAL
cat >runner.yaml <<END
runner: {timeout: 8760h, shutdown_timeout: 24h}
cache: {enabled: false}
END
# The supervisor reads the log on standard output.
if [ "$ephemeral" = true ]; then exec gitea-runner daemon --config runner.yaml 2>&1; fi
# A static runner has a process for each job, because its log does not show the end of a job otherwise.
stopped= child= status=0
trap 'stopped=1; [ -z "$child" ] || kill -TERM "$child" 2>/dev/null || :' TERM INT
while [ -z "$stopped" ] && [ "$status" = 0 ]; do
  gitea-runner daemon --once --config runner.yaml 2>&1 &
  child=$!
  # A signal that arrived before the line above.
  [ -z "$stopped" ] || kill -TERM "$child" 2>/dev/null || :
  # A signal ends `wait`, and not the runner.
  while :; do
    status=0
    wait "$child" || status=$?
    kill -0 "$child" 2>/dev/null || break
  done
done
exit "$status"
