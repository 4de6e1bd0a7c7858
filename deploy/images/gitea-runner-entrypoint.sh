#!/bin/sh
# What a runner's container runs in Gitea's image. The worker has registered the runner; GITEA_RUNNER_FILE is the content of its file
# .runner. core/domain/runnerKinds/gitea.ts carries the same text, for Gitea's image as it is.
set -eu
export HOME="${RUNNER_HOME:-/tmp/gitea-runner}"
mkdir -p "$HOME"
cd "$HOME"
(umask 077 && printf %s "$GITEA_RUNNER_FILE" >.runner)
unset GITEA_RUNNER_FILE
cat >runner.yaml <<END
runner: {timeout: 8760h, shutdown_timeout: 24h}
cache: {enabled: false}
END
# The supervisor reads the log on standard output.
exec gitea-runner daemon --config runner.yaml 2>&1
