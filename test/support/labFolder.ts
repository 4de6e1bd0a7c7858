/**
 * Returns the folder of the test run's lab. Fake nodes have a lab of their own, so that pods do not
 * get to the wrong kind of node.
 */
export function testLabFolder(nodes?: 'kubelet' | 'kwok'): string {
  const base = process.env['HOLDFAST_LAB_DIR'] ?? '.holdfast/lab-test';
  return nodes === 'kwok' ? `${base}-kwok` : base;
}

/** Returns the folder of a second cluster, for tests that must distinguish two. */
export function otherClusterFolder(): string {
  return `${testLabFolder()}-other`;
}

/** Returns the folder of the lab whose components are killed and restarted during tests. */
export function restartsLabFolder(): string {
  return `${testLabFolder('kubelet')}-restarts`;
}

/** Returns the folder of the lab whose API server is stopped during tests. */
export function outagesLabFolder(): string {
  return `${testLabFolder()}-outages`;
}

/** Returns the folder of the lab for chaos tests. */
export function chaosLabFolder(): string {
  return `${testLabFolder('kwok')}-chaos`;
}

/** Returns the folder of the lab for actions-runner-controller, which watches all namespaces. */
export function arcLabFolder(): string {
  return `${testLabFolder('kwok')}-arc`;
}
