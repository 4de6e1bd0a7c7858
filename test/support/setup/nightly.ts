import node from './node.ts';

/** Before the nightly tests. What only one of them needs is fetched by that one. */
export default async function setup(): Promise<void> {
  await node();
}
