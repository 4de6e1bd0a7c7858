/** The folder of the test run's lab. Fake nodes live in a lab of their own: pods must not land on the wrong kind. */
export function testLabFolder(nodes?: 'kubelet' | 'kwok'): string {
  const base = process.env['HOLDFAST_LAB_DIR'] ?? '.holdfast/lab-test';
  return nodes === 'kwok' ? `${base}-kwok` : base;
}

/** The folder of a second cluster, for what must not take one for the other. */
export function otherClusterFolder(): string {
  return `${testLabFolder()}-other`;
}

/** The folder of the lab whose parts are killed and started again in the middle of a test. */
export function restartsLabFolder(): string {
  return `${testLabFolder('kubelet')}-restarts`;
}

/** The folder of the lab whose API server is away for a while. */
export function outagesLabFolder(): string {
  return `${testLabFolder()}-outages`;
}

/** The folder of the lab around which everything goes wrong. */
export function chaosLabFolder(): string {
  return `${testLabFolder('kwok')}-chaos`;
}

/** The folder of the lab that another controller has to itself, which looks at all namespaces. */
export function arcLabFolder(): string {
  return `${testLabFolder('kwok')}-arc`;
}
