/** What a benchmark is to those who run it and show it. */
import type { BenchEnvironment, WorldOptions } from './world.ts';

/** The figures by their JSON keys; a point in a key stands for an object in the JSON. */
export type Figures = Readonly<Record<string, number>>;

export interface Budget {
  /** `max`: the figure must not exceed it; `min`: it must not fall below. */
  readonly kind: 'max' | 'min';
  readonly limit: number;
  /** What it is meant for, where it is not this run. */
  readonly note?: string;
}

export interface FigureInfo {
  readonly unit: string;
  readonly what: string;
  readonly budget?: Budget;
  /** What a competitor, or the machine itself, was measured to do. */
  readonly compare?: string;
  /** Not measured by every run. */
  readonly optional?: true;
}

export interface Measured {
  readonly figures: Figures;
  /** More that explains the figures; no budget, no promise of stable names. */
  readonly details: Readonly<Record<string, unknown>>;
}

interface Described {
  readonly name: string;
  readonly summary: string;
  /** In the order of the report; the keys are those of the JSON. */
  readonly figures: Readonly<Record<string, FigureInfo>>;
  /** It can be measured with more than one worker. */
  readonly severalWorkers?: true;
}

/** Measures runners in a {@link BenchEnvironment}. */
export interface WorldBenchmark extends Described {
  readonly defaultRunners: number;
  run(world: BenchEnvironment, runners: number): Promise<Measured>;
}

/** Brings up what it needs itself: processes, or a node for pods. */
export interface LocalBenchmark extends Described {
  readonly defaultRuns: number;
  run(options: LocalOptions): Promise<Measured>;
}

export interface LocalOptions extends WorldOptions {
  readonly runs: number;
  /** Also measure what takes a real kubelet. */
  readonly kubelet: boolean;
}

export type Benchmark = WorldBenchmark | LocalBenchmark;
