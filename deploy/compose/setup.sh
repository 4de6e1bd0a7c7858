#!/bin/sh
# Makes the namespace and the search attributes where they are missing. TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE say where.
set -eu

temporal operator cluster health
temporal operator namespace describe --namespace "$TEMPORAL_NAMESPACE" >/dev/null 2>&1 ||
  temporal operator namespace create --namespace "$TEMPORAL_NAMESPACE" --retention 72h

present=$(temporal operator search-attribute list --namespace "$TEMPORAL_NAMESPACE")
for name in RunnerPhase RunnerSet RunnerScope RunnerOutcome RunnerCause RunnerName RunnerLocation; do
  if echo "$present" | grep -qw "$name"; then continue; fi
  temporal operator search-attribute create --namespace "$TEMPORAL_NAMESPACE" --name "$name" --type Keyword
done
