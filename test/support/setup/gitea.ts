import { fetchComponents } from './fetchComponents.ts';
import temporal from './temporal.ts';

/** Prepares the tests on Gitea. */
export default async function setup(): Promise<void> {
  await temporal();
  await fetchComponents({ gitea: true }, ['gitea', 'gitea-runner']);
}
