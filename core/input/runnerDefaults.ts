/** Production defaults of a runner's input; a table test pins every one of them. */
export const RUNNER_DEFAULTS = {
  credential: 'default',
  runnerGroupId: 1,
  labels: ['self-hosted'],
  timeouts: { provisioning: '1h', podUnscheduled: '5m', podPending: '10m', registration: '10m', jobTimeout: '24h' },
  stop: { signalTimeout: '10s', cleanupTimeout: '5s' },
  intervals: {
    resync: '10m',
    busyRetry: '1m',
    busyRecheck: '10m',
    absentRecheck: '10s',
    credentialsRetry: '5m',
    onlineLookup: '2s',
    removalSettle: '2m',
    idleConfirm: '3s',
    stopPatience: '30s',
    heldBack: '5s',
  },
} as const;

/** A runner may only lower its job timeout; scopes with a higher cap are named in the worker's config ({@link TimeoutPolicy}). */
export const JOB_TIMEOUT_CAP = '24h';

/** Name of the volume claim that holds the state of a workload from one attempt to the next. */
export const STATE_CLAIM = 'state';
