export { createCiServers, type CiServersOptions } from './createCiServers.ts';
export {
  type Credential,
  type Credentials,
  type SecretProvider,
  CredentialsError,
  credentialsForTaskQueue as credentialsFor,
  credentialsSchema,
  parseCredentials,
} from './credentials.ts';
export type { CiRequestMetrics as ObservedRequest, RequestObserver } from './requestObserver.ts';
