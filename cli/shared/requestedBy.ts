import { userInfo } from 'node:os';

/** `requested by anna with holdfast`: the reason that is shown where a person gave none. */
export const requestedBy = (): string => `requested by ${user()} with holdfast`;

function user(): string {
  try {
    return userInfo().username;
  } catch {
    return 'an unknown user'; // a container may run as a user id without an entry in /etc/passwd
  }
}
