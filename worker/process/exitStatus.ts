/** How the worker's process ends; a signal that ended it adds 128, as shells have it. */
export const EXIT_STATUS = {
  /** It broke while running; the log says why. */
  failed: 1,
  /** It could not start: a setting, the Temporal server, its search attributes or the permissions are not right; stderr says which. */
  cannotStart: 2,
  SIGINT: 130,
  SIGTERM: 143,
} as const;
