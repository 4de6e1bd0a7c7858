/** Results as files, to be committed. */
import { mkdir, writeFile } from 'node:fs/promises';
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';
import { join } from 'node:path';
import type { TemporalServer } from '../lab/lab.ts';
import type { Measured } from './benchmark.ts';
import { nested } from './report.ts';

/** The machine, and how busy it was with other things when the benchmark began. */
export interface Machine {
  readonly cores: number;
  readonly cpu: string;
  readonly memoryGiB: number;
  readonly node: string;
  readonly loadBefore: number;
}

export function describeMachine(): Machine {
  return {
    cores: availableParallelism(),
    cpu: cpus()[0]?.model ?? 'unknown',
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    node: process.version,
    loadBefore: Number((loadavg()[0] ?? 0).toFixed(1)),
  };
}

/** On what it was measured. */
export interface Setup {
  readonly temporal: TemporalServer;
  readonly workers: number;
}

/** @returns the path of the file */
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
