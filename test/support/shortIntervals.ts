/** Waits short enough for a test; production's are pinned by a table of their own. */
export const SHORT_INTERVALS = {
  busyRetry: '150ms',
  busyRecheck: '300ms',
  absentRecheck: '100ms',
  credentialsRetry: '200ms',
  onlineLookup: '50ms',
  removalSettle: '500ms',
  idleConfirm: '100ms',
  stopPatience: '500ms',
  listAge: '300ms',
  lateCreation: '500ms',
} as const;
