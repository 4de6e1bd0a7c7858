# GitHub's runner with an entry point of its own, as a base for your own image: add your tools below, and name the result in
# HOLDFAST_RUNNER_IMAGE or in a runner's `image`.
#   docker build -t my-runner -f deploy/images/runner.Dockerfile deploy/images
FROM ghcr.io/actions/actions-runner:2.338.0

COPY --chmod=0755 runner-entrypoint.sh /usr/local/bin/holdfast-runner

# run.sh passes SIGTERM on to the runner, which then ends its job gracefully.
ENV RUNNER_MANUALLY_TRAP_SIG=1
USER runner
WORKDIR /home/runner
ENTRYPOINT ["/usr/local/bin/holdfast-runner"]
