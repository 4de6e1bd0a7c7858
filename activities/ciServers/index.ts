export { createCiServers, type CiServersOptions } from './createCiServers.ts';
export {
  type Credential,
  type Credentials,
  type SecretProvider,
  CredentialsError,
  credentialsFor,
  credentialsSchema,
  parseCredentials,
} from './credentials.ts';
export type { ObservedRequest, RequestObserver } from './requestObserver.ts';
