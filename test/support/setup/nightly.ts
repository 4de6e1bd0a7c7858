import node from './node.ts';

/** Prepares the nightly tests. A component that only one test needs is fetched by that test. */
export default async function setup(): Promise<void> {
  await node();
}
