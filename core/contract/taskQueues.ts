/** Task queue of the calls to the CI server with one credential: rate-limited on the server side. */
export const ciTaskQueue = (taskQueue: string, credential: string): string => `${taskQueue}-ci-${credential}`;
