#!/usr/bin/env bash
# Checks .github/workflows with actionlint, built from its Go module where it is not installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
if command -v actionlint >/dev/null; then exec actionlint; fi
PATH="$PATH:/usr/local/go/bin" exec go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.8
