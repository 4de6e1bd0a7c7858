export { createCiServers, type CiServersOptions } from './createCiServers.ts';
export {
  type Credential,
  type Credentials,
  type SecretProvider,
  CredentialsError,
  credentialsForTaskQueue,
  credentialsSchema,
  parseCredentials,
} from './credentials.ts';
export type { CiRequestMetrics, RequestObserver } from './requestObserver.ts';
