#!/usr/bin/env bash
# Packages the Helm chart and pushes it as an OCI artifact.
#   tools/release/publishChart.sh REPOSITORY    for example registry.example.com/acme: it is then oci://registry.example.com/acme/charts/holdfast
# Needs Helm 3.8 or later; it uses Docker's login. DRY_RUN=1 packages the chart and prints the push.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [ $# -ne 1 ]; then
  echo 'usage: tools/release/publishChart.sh REPOSITORY' >&2
  exit 2
fi

packages=$(mktemp -d)
trap 'rm -rf "$packages"' EXIT
helm package deploy/chart --destination "$packages" >&2
for package in "$packages"/*.tgz; do
  if [ -n "${DRY_RUN:-}" ]; then
    echo "helm push $(basename "$package") oci://$1/charts"
  else
    helm push "$package" "oci://$1/charts"
  fi
done
