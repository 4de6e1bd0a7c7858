/** Types of the failures that activities end with; workflows and operators match on them, so they are stable. */
export const FAILURE_TYPES = {
  busy: 'RunnerBusy',
  rate_limited: 'RateLimited',
  credentials: 'CredentialsRefused',
  name_taken: 'RunnerNameTaken',
  rejected: 'CiServerRejected',
  unavailable: 'CiServerUnavailable',
  notOnline: 'RunnerNotOnlineYet',
  nodeNotReleased: 'NodeNotReleased',
  invalidInput: 'InvalidInput',
  overtaken: 'ProvisioningOvertaken',
  unknownCredential: 'UnknownCredential',
  quota_exceeded: 'QuotaExceeded',
  invalid: 'PodInvalid',
  denied: 'ClusterDenied',
  forbidden: 'ComputeForbidden',
  computeUnavailable: 'ComputeUnavailable',
} as const;
