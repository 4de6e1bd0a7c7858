/** Writes results to files. */
import { mkdir, writeFile } from 'node:fs/promises';
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';
import { join } from 'node:path';
import type { TemporalServer } from '../lab/lab.ts';
import type { Measured } from './benchmark.ts';
import { nested } from './report.ts';

/** Machine of a run, and its load before the benchmark. */
export interface Machine {
  readonly cores: number;
  readonly cpu: string;
  readonly memoryGiB: number;
  readonly node: string;
  readonly loadBefore: number;
}

/** Returns the description of this machine. */
export function describeMachine(): Machine {
  return {
    cores: availableParallelism(),
    cpu: cpus()[0]?.model ?? 'unknown',
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    node: process.version,
    loadBefore: Number((loadavg()[0] ?? 0).toFixed(1)),
  };
}

/** Temporal server and number of workers of a run. */
export interface Setup {
  readonly temporal: TemporalServer;
  readonly workers: number;
}

/**
 * Saves a result.
 * @returns the path of the file
 */
export async function saveResult(
  folder: string,
  benchmark: string,
  machine: Machine,
  setup: Setup,
  measured: Measured,
  note: string | undefined,
): Promise<string> {
  const date = new Date().toISOString();
  const path = join(folder, `${benchmark}-${date.slice(0, 16).replaceAll(/[-:]/g, '')}.json`);
  await mkdir(folder, { recursive: true });
  await writeFile(
    path,
    `${JSON.stringify({ benchmark, date, machine, ...setup, figures: nested(measured.figures), details: measured.details, ...(note === undefined ? {} : { note }) }, null, 2)}\n`,
  );
  return path;
}
