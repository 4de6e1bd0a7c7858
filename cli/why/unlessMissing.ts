import { CliError } from '../shared/exit.ts';

/**
 * Returns the result of a read, or `undefined` if the object does not exist: it may have ended
 * since it was listed.
 */
export async function unlessMissing<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof CliError && error.code === 'not_found') return undefined;
    throw error;
  }
}
