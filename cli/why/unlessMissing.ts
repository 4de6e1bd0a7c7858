import { CliError } from '../shared/exit.ts';

/** Returns what is read, or `undefined` if it does not exist: it may have ended since it was named. */
export async function unlessMissing<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof CliError && error.code === 'not_found') return undefined;
    throw error;
  }
}
