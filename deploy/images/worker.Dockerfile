# The worker, and the `holdfast` command. It also carries the supervisor's folder, which runners' pods copy from it: name this image in
# HOLDFAST_SUPERVISOR_IMAGE.
#   docker build -t holdfast-worker -f deploy/images/worker.Dockerfile .
# Debian and not Alpine: the Temporal SDK's native part needs glibc.
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

FROM packages AS build
COPY tsconfig.json tsconfig.build.json ./
COPY core core
COPY workflows workflows
COPY activities activities
COPY worker worker
COPY cli cli
COPY supervisor supervisor
COPY tools tools
COPY demo demo
COPY deploy/images deploy/images
# What stays is what runs: no types and no maps of sources, and of the Temporal SDK's native part (30 MB for each platform) this one's.
RUN npm run build && npm prune --omit=dev \
  && rm -r node_modules/@temporalio/core-bridge/sdk-core/crates \
  && find node_modules/@temporalio/core-bridge/releases -mindepth 1 -maxdepth 1 ! -name "$(uname -m)-unknown-linux-gnu" -exec rm -r {} + \
  && find dist node_modules -type f \( -name '*.d.ts' -o -name '*.d.[cm]ts' -o -name '*.map' \) -delete

# Not Node's image: the supervisor's folder has a Node, which runs the worker as well.
FROM debian:12.15-slim@sha256:3783cc01769c7b2b1b83a5c5ad96c815348e28ed7da68e2e3687004faa906251
# The Temporal SDK trusts the system's certificates, and without any it speaks no TLS.
RUN apt-get update && apt-get install --yes --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/* && useradd --uid 1000 holdfast
ENV NODE_ENV=production
WORKDIR /app
COPY --from=supervisor /opt/holdfast /opt/holdfast
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
RUN ln -s /opt/holdfast/node /usr/local/bin/node && ln -s /app/dist/cli/main.js /usr/local/bin/holdfast && chmod +x dist/cli/main.js && holdfast --version
# `holdfast`. By its number Kubernetes sees that it is not root.
USER 1000
# Health and metrics; deliveries of GitHub's webhook.
EXPOSE 8080 8081
# Long enough for HOLDFAST_SHUTDOWN_FORCE_TIME (50s): run it with a stop timeout of 60 s.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["node", "-e", "fetch('http://127.0.0.1:8080/livez').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# Exec form: the process itself gets SIGTERM.
CMD ["node", "dist/worker/main.js"]
