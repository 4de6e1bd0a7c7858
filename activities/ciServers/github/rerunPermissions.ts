/**
 * Permissions of a GitHub App that reruns need beyond those of runners: to request a rerun, and to
 * read why a job was cancelled.
 */
export const RERUN_PERMISSIONS = { actions: 'write', checks: 'read' } as const;
