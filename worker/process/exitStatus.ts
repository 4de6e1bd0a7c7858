/** Exit statuses of the worker's process. A signal that ended it adds 128, as in a shell. */
export const EXIT_STATUS = {
  /** Failed while running; the log has the reason. */
  failed: 1,
  /**
   * Failed to start: invalid settings, Temporal server, search attributes or permissions. Standard
   * error has the reason.
   */
  cannotStart: 2,
  SIGINT: 130,
  SIGTERM: 143,
} as const;
