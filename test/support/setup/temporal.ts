import { fetchComponents } from './fetchComponents.ts';

/** Before the tests on Temporal. */
export default async function setup(): Promise<void> {
  await fetchComponents({ temporal: true }, ['temporal']);
}
