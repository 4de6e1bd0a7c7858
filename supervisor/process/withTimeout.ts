/**
 * Waits until the work is done, or for this time. The work itself continues after the timeout.
 *
 * @param ms - timeout (ms)
 * @returns whether the work is done
 */
export async function withTimeout(ms: number, work: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => (timer = setTimeout(resolve, ms, false)));
  const done = await Promise.race([work.then(() => true), late]);
  clearTimeout(timer);
  return done;
}
