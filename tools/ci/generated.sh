#!/usr/bin/env bash
# Writes every generated file again. Fails if one of them was not up to date.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
npm run --silent schemas
npm run --silent chart
git diff --exit-code -- schemas deploy docs
