import cluster from './cluster.ts';
import { fetchComponents } from './fetchComponents.ts';

/** Prepares the tests with nodes, real and fake ones, and those of the lab itself. */
export default async function setup(): Promise<void> {
  await cluster();
  await fetchComponents({ nodes: 'kubelet' }, ['kubelet']);
  await fetchComponents({ nodes: 'kwok' }, ['kwok']);
  await fetchComponents({ gitea: true }, ['gitea', 'gitea-runner']);
  await fetchComponents({ temporal: true }, ['temporal-server', 'temporal-sql-tool']);
}
