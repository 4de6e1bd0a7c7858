#!/usr/bin/env bash
# Builds the images of the worker and of the supervisor for amd64 and arm64, each with its SBOM and provenance, and pushes them.
#   tools/release/publishImages.sh REPOSITORY VERSION    for example registry.example.com/acme 0.2.0
# Needs a Docker with buildx that is logged in to the registry. DRY_RUN=1 prints the commands instead.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [ $# -ne 2 ]; then
  echo 'usage: tools/release/publishImages.sh REPOSITORY VERSION' >&2
  exit 2
fi
repository=$1 version=$2
if ! [[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$ ]]; then
  echo "VERSION: must be a version such as 0.2.0, got \"$version\"" >&2
  exit 2
fi

run() {
  if [ -n "${DRY_RUN:-}" ]; then echo "$*"; else "$@"; fi
}

# The default builder cannot build for several platforms; binfmt lets it run those of the other.
run docker run --privileged --rm tonistiigi/binfmt:qemu-v9.2.2 --install arm64
run docker buildx create --name holdfast-release --use
for image in worker supervisor; do
  run docker buildx build --platform linux/amd64,linux/arm64 --sbom=true --provenance=mode=max \
    --file "deploy/images/$image.Dockerfile" --tag "$repository/holdfast-$image:$version" --push .
done
