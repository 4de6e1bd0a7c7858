const startedAt = Date.now();

/** What goes on, with the seconds since the start. */
export const progress = (line: string): void =>
  void process.stderr.write(
    `[compose ${String(Math.round((Date.now() - startedAt) / 1_000)).padStart(3)} s] ${line}\n`,
  );

/** What was found. */
export const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** What is waited for, and how long it took, in whole seconds. */
export async function timed<T>(work: () => Promise<T>): Promise<{ result: T; seconds: number }> {
  const from = Date.now();
  const result = await work();
  return { result, seconds: Math.round((Date.now() - from) / 1_000) };
}
