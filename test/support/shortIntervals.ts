/** Intervals that are short enough for tests. A table of its own tests those of production. */
export const SHORT_INTERVALS = {
  busyRetry: '150ms',
  busyCheck: '300ms',
  absentCheck: '100ms',
  credentialsRetry: '200ms',
  onlineCheck: '50ms',
  removalGrace: '500ms',
  idleConfirmation: '100ms',
  stopResponseTimeout: '500ms',
  listMaxAge: '300ms',
  lateCreationWindow: '500ms',
} as const;
