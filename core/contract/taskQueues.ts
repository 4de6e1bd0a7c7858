/** Task queue of the calls to the CI server with one credential: rate-limited on the server side. */
export const ciTaskQueue = (taskQueue: string, credential: string): string =>
  `${taskQueue}-ci-${credential}`;

/** Task queue of the calls to the cluster: apart, so that the others do not wait while its API server is away. */
export const clusterTaskQueue = (taskQueue: string): string => `${taskQueue}-cluster`;
