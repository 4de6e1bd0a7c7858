# The supervisor's folder alone, which runners' pods copy: name this image in HOLDFAST_SUPERVISOR_IMAGE. The worker's image has the folder, too; this one is a
# third of its size, and brings nothing of the worker to the nodes of runners.
#   docker build -t holdfast-supervisor -f deploy/images/supervisor.Dockerfile .
# The first two stages are those of worker.Dockerfile; the last has Busybox for its `cp`.
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

FROM busybox:1.37.0@sha256:bdf57e528e45e4433820e045b29b4597825a1c9e38353532d90a01445013f82e
COPY --from=supervisor /opt/holdfast /opt/holdfast
# By its number Kubernetes sees that it is not root.
USER 1000
