/** What a benchmark is to those who run it and show it. */
import type { World } from './world.ts';

/** The figures by their JSON keys. */
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
}

export interface Measured {
  readonly figures: Figures;
  /** More that explains the figures; no budget, no promise of stable names. */
  readonly details: Readonly<Record<string, unknown>>;
}

export interface Benchmark {
  readonly name: string;
  readonly summary: string;
  readonly defaultRunners: number;
  /** In the order of the report; the keys are those of the JSON. */
  readonly figures: Readonly<Record<string, FigureInfo>>;
  run(world: World, runners: number): Promise<Measured>;
}
