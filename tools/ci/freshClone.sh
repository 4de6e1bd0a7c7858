#!/usr/bin/env bash
# Runs commands in a clone of the committed state, with an empty home directory and no cache, and tells what each takes.
#   freshClone.sh FOLDER COMMAND...   the clone and its home directory are made in FOLDER, and removed
set -euo pipefail
folder=$(mktemp -d "$1/clone-XXXXXX")
shift
source=$(git -C "$(dirname "${BASH_SOURCE[0]}")" rev-parse --show-toplevel)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT

mkdir "$folder/home"
git clone --quiet --no-hardlinks "$source" "$folder/holdfast"
cd "$folder/holdfast"
for command in "$@"; do
  begun=$SECONDS
  status=0
  env -u XDG_CACHE_HOME -u GOPATH -u GOCACHE -u GOMODCACHE -u HOLDFAST_REQUIRE HOME="$folder/home" bash -c "$command" || status=$?
  printf '[fresh clone] %s: status %d after %d s\n' "$command" "$status" $((SECONDS - begun))
  if ((status != 0)); then exit "$status"; fi
done
