/** Task queue for calls to the CI server with one credential. Temporal limits its rate. */
export const ciTaskQueue = (taskQueue: string, credential: string): string =>
  `${taskQueue}-ci-${credential}`;

/** Task queue for the sessions of scale sets, each of which holds a slot all the time. */
export const listenTaskQueue = (taskQueue: string): string => `${taskQueue}-listen`;

/**
 * Task queue for calls to the cluster. It is separate so that other calls do not wait while the API
 * server is unavailable.
 */
export const clusterTaskQueue = (taskQueue: string): string => `${taskQueue}-cluster`;
