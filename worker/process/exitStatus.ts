/**
 * Exit statuses of the worker process. For a process that a signal ended it is 128 plus the number
 * of the signal, as in a shell.
 */
export const EXIT_STATUS = {
  /** The process failed while running. The log has the reason. */
  failed: 1,
  /**
   * The process could not start: invalid settings, Temporal server, search attributes or
   * permissions. Standard error has the reason.
   */
  cannotStart: 2,
  SIGINT: 130,
  SIGTERM: 143,
} as const;
