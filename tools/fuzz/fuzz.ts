import fc from 'fast-check';
import type { FuzzTarget } from './target.ts';

export interface FuzzOptions {
  readonly cases: number;
  readonly seed: number;
  /** A case again, as a finding names it; its input is shown. */
  readonly path?: string;
}

/** The smallest input found that breaks a rule. */
export interface Finding {
  /** Which case of the seed, for `--path`. */
  readonly path: string;
  readonly input: string;
  readonly error: string;
}

export interface TargetReport {
  readonly target: string;
  readonly seed: number;
  readonly cases: number;
  readonly seconds: number;
  /** CPU of the slowest case, in ms. */
  readonly slowestMs: number;
  /** Nothing else is tried once something is found. */
  readonly finding?: Finding;
}

/** CPU, not time: a busy machine is no finding. */
const MAX_MS = 1_000;

/**
 * Maximum time to shrink a finding (wall-clock ms). A case that takes seconds has shrunk cases that
 * take seconds too.
 */
const MAX_SHRINKING_MS = 30_000;

/**
 * Runs the cases of one target. Does not throw if a case fails.
 * @param begins - called before each case is generated, and for each shrunk case, with its index
 */
export async function fuzz(
  { name, open }: FuzzTarget,
  { cases, seed, path }: FuzzOptions,
  begins: (run: number) => void = () => undefined,
): Promise<TargetReport> {
  const opened = await open();
  const strays: unknown[] = [];
  const stray = (reason: unknown): void => void strays.push(reason);
  process.on('unhandledRejection', stray);
  process.on('uncaughtException', stray);
  const startedAt = performance.now();
  /** Index of the current case. */
  let run = 0;
  let slowestMs = 0;
  let shrinksUntil: number | undefined;
  const property = fc.asyncProperty(opened.inputs, async (input) => {
    if (shrinksUntil !== undefined && performance.now() > shrinksUntil) return;
    try {
      await judge(input);
      if (shrinksUntil === undefined) run++;
    } catch (error) {
      shrinksUntil ??= performance.now() + MAX_SHRINKING_MS;
      throw error;
    } finally {
      begins(run);
    }
  });
  const judge = async (input: unknown): Promise<void> => {
    if (path !== undefined)
      process.stderr.write(`${name}, seed ${seed}, path ${path}: ${formatInput(input)}\n`);
    const before = cpuMs();
    const pending = opened.run(input);
    if (pending !== undefined) {
      await pending;
      // Unhandled rejections are reported when the event loop continues.
      await new Promise((resolve) => setImmediate(resolve));
    }
    const tookMs = cpuMs() - before;
    slowestMs = Math.max(slowestMs, tookMs);
    if (tookMs > MAX_MS) throw new Error(`took ${Math.round(tookMs)} ms of CPU`);
    if (strays.length > 0)
      throw new Error('an error that nobody handled', { cause: strays.splice(0)[0] });
  };
  try {
    begins(run);
    const result = await fc.check(property, {
      seed,
      ...(path === undefined ? { numRuns: cases } : { numRuns: 1, path }),
    });
    const finding = result.failed
      ? {
          path: result.counterexamplePath ?? '',
          input: formatInput(result.counterexample?.[0]),
          error: formatError(result.errorInstance),
        }
      : undefined;
    return {
      target: name,
      seed,
      cases: result.failed ? run + 1 : run,
      seconds: (performance.now() - startedAt) / 1_000,
      slowestMs,
      ...(finding && { finding }),
    };
  } finally {
    process.off('unhandledRejection', stray);
    process.off('uncaughtException', stray);
    await opened.close?.();
  }
}

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

/** Returns the input as code for a test, except for endless values. */
export function formatInput(input: unknown): string {
  const text = fc.stringify(input);
  return text.length > 3_000 ? `${text.slice(0, 3_000)}… (${text.length} characters)` : text;
}

function formatError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? '' : `\ncaused by ${formatError(error.cause)}`;
  return `${error.stack?.split('\n').slice(0, 8).join('\n') ?? error.message}${cause}`;
}
