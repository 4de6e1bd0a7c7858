/** Interface of a benchmark to the command and the report. */
import type { BenchEnvironment, WorldOptions } from './world.ts';

/** Figures by their JSON keys. A point in a key stands for a nested object in the JSON. */
export type Figures = Readonly<Record<string, number>>;

/** Limit of a figure. */
export interface Budget {
  /** `max`: the figure must not be above the limit. `min`: it must not be below. */
  readonly kind: 'max' | 'min';
  readonly limit: number;
  /** Condition of the budget, if it does not apply to every run. */
  readonly note?: string;
}

/** Description of a figure. */
export interface FigureInfo {
  readonly unit: string;
  readonly what: string;
  readonly budget?: Budget;
  /** Measured value of another system or of the machine itself. */
  readonly compare?: string;
  /** Whether a run may omit the figure. */
  readonly optional?: true;
}

/** Result of a benchmark. */
export interface Measured {
  readonly figures: Figures;
  /** Additional values that explain the figures. Without budgets; names may change. */
  readonly details: Readonly<Record<string, unknown>>;
}

interface Described {
  readonly name: string;
  readonly summary: string;
  /** Figures by JSON key, in the order of the report. */
  readonly figures: Readonly<Record<string, FigureInfo>>;
  /** Whether more than one worker can be measured. */
  readonly severalWorkers?: true;
}

/** Measures runners in a {@link BenchEnvironment}. */
export interface WorldBenchmark extends Described {
  readonly defaultRunners: number;
  run(world: BenchEnvironment, runners: number): Promise<Measured>;
}

/** Starts its components itself: processes, or a node for pods. */
export interface LocalBenchmark extends Described {
  readonly defaultRuns: number;
  run(options: LocalOptions): Promise<Measured>;
}

/** Options of a {@link LocalBenchmark}. */
export interface LocalOptions extends WorldOptions {
  readonly runs: number;
  /** Whether to measure also the figures that need a real kubelet. */
  readonly kubelet: boolean;
}

/** A benchmark of either kind. */
export type Benchmark = WorldBenchmark | LocalBenchmark;
