/** Rejects when somebody ends the benchmark, so that it takes down what it has brought up. */
export function interruption(): Promise<never> {
  return new Promise<never>((_, reject) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const)
      process.once(signal, () => reject(new Error(`ended by ${signal}`)));
  });
}
