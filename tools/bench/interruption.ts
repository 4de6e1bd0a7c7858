/** Rejects at SIGINT or SIGTERM, so that the benchmark stops the components it has started. */
export function interruption(): Promise<never> {
  return new Promise<never>((_, reject) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const)
      process.once(signal, () => reject(new Error(`ended by ${signal}`)));
  });
}
