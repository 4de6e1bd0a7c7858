#!/bin/sh
# What an image has in /home/runner in place of GitHub's run.sh.
cd "$(dirname "$0")"
exec node /opt/holdfast/simulator/runner.ts "$@"
