# GitHub's runner under Holdfast's supervisor, as a base for your own image: add your tools below, and name the result in
# HOLDFAST_RUNNER_IMAGE or in a runner's `image`, with `supervisor: image`.
#   docker build -t my-runner -f deploy/images/runner.Dockerfile .
# The first two stages are those of worker.Dockerfile.
FROM node:24.19.0-bookworm-slim@sha256:a9f5f7c91a432850b2a8a7797adf5eadb6c733ceed61167806cee7ea7fbc29df AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci

FROM packages AS supervisor
# tini-static comes with tini; strip makes Node smaller.
RUN apt-get update && apt-get install --yes --no-install-recommends binutils tini && rm -rf /var/lib/apt/lists/*
COPY core core
COPY activities/artifacts activities/artifacts
COPY supervisor supervisor
COPY uploader uploader
COPY deploy/images deploy/images
RUN npm run build:supervisor-folder -- /opt/holdfast

FROM ghcr.io/actions/actions-runner:2.338.0@sha256:4ffadc0002b2581327e06101fc8c06cd189232baf79fe561fac9caeb76f5e807

COPY --from=supervisor /opt/holdfast /opt/holdfast
COPY deploy/images/runner-entrypoint.sh /usr/local/bin/holdfast-runner

# The supervisor watches the runner's log and its job hooks. It takes its other options from variables, too, which the worker sets.
ENV HOLDFAST_RUNNER_KIND=github
# run.sh passes SIGTERM on to the runner, which then ends its job gracefully.
ENV RUNNER_MANUALLY_TRAP_SIG=1
# `runner`. By its number Kubernetes sees that it is not root.
USER 1001
WORKDIR /home/runner
ENTRYPOINT ["/opt/holdfast/tini", "-s", "--", "/opt/holdfast/ld.so", "--library-path", "/opt/holdfast/lib", "/opt/holdfast/node", "/opt/holdfast/supervisor.mjs", "--", "/usr/local/bin/holdfast-runner"]
