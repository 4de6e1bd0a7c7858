import { fetchComponents } from './fetchComponents.ts';

/** Prepares the tests on Temporal. */
export default async function setup(): Promise<void> {
  await fetchComponents({ temporal: true }, ['temporal']);
}
