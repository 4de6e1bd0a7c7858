import { userInfo } from 'node:os';

/** Returns the default reason of a request: `requested by anna with holdfast`. */
export const requestedBy = (): string => `requested by ${user()} with holdfast`;

function user(): string {
  try {
    return userInfo().username;
  } catch {
    return 'an unknown user'; // a container may run with a user ID without an entry in /etc/passwd
  }
}
